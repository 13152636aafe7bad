//! What the gateway says about an attempt is true: what is not known is never called done.

use std::sync::Arc;

use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::{
    cuts_proxy::How,
    truth_answers::broken,
    truth_upstream::{Scripted, Turn, answer, receipt},
    world::{Answer, Gateway, Many, Setup, ask, free_address, persist, post},
};

const CONFIG: &str = r#"
[defaults]
timeout = "2s"
lease = "4s"

[[route]]
match = "POST /hold"

[[route]]
match = "POST /resend"
recovery = "resend"

[[route]]
match = "POST /probe"
recovery = "probe"
probe = "/by-key/{key}"
upstream_works_for = "200ms"

[[route]]
match = "POST /terminal"
results = "terminal"

[[route]]
match = "POST /stripe"
results = "stripe"

[[route]]
match = "POST /success-only"
results = "success-only"

[[route]]
match = "POST /at-most-once"
results = "at-most-once"
"#;

#[tokio::test]
async fn a_broken_answer_is_a_doubt_and_is_not_sent_again_where_that_is_held() {
    let world = World::start().await;
    world
        .with_every_broken_answer(true, async |world, key, how| {
            let first = world.ask("/hold", &key).await;
            assert_eq!(first.status, unanswered(how), "{key}: {first:?}");
            for _ in 0..2 {
                let again = world.ask("/hold", &key).await;
                let told = (again.status, again.code());
                assert_eq!(told, (409, Some("outcome-in-doubt".to_owned())), "{key}");
            }
            assert_eq!(world.upstream.fences(&key), ["1"], "{key}");
        })
        .await;
}

#[tokio::test]
async fn a_broken_answer_is_recovered_by_sending_the_same_key_again() {
    let world = World::start().await;
    world
        .with_every_broken_answer(true, async |world, key, _| {
            world.ends_well("/resend", &key).await;
            assert_eq!(world.upstream.fences(&key), ["1", "2"], "{key}");
        })
        .await;
}

#[tokio::test]
async fn a_broken_answer_after_the_effect_is_finished_with_what_the_upstream_remembers() {
    let world = World::start().await;
    world
        .with_every_broken_answer(true, async |world, key, _| {
            world.ends_well("/probe", &key).await;
            assert_eq!(world.upstream.fences(&key), ["1"], "{key}");
            assert_eq!(world.upstream.asked(&key), 1, "{key}");
        })
        .await;
}

#[tokio::test]
async fn a_broken_answer_before_the_effect_is_sent_again_once_the_upstream_denies_it() {
    let world = World::start().await;
    world
        .with_every_broken_answer(false, async |world, key, _| {
            world.ends_well("/probe", &key).await;
            assert_eq!(world.upstream.fences(&key), ["1", "2"], "{key}");
            assert!(world.upstream.asked(&key) >= 1, "{key}");
        })
        .await;
}

#[tokio::test]
async fn a_broken_answer_under_at_most_once_is_what_every_retry_hears() {
    let world = World::start().await;
    world
        .with_every_broken_answer(true, async |world, key, how| {
            let first = world.ask("/at-most-once", &key).await;
            assert_eq!(first.status, unanswered(how), "{key}: {first:?}");
            let again = world.ask("/at-most-once", &key).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{key}");
            assert!(again.is_replay(), "{key}");
            assert_eq!(world.upstream.fences(&key), ["1"], "{key}");
        })
        .await;
}

#[tokio::test]
async fn a_connection_refused_means_that_nothing_happened_and_the_key_stays_free() {
    let address = free_address();
    let gateway = Setup::new(address).config(CONFIG).start().await;
    for path in ["/hold", "/resend", "/probe", "/stripe"] {
        let answer = ask(gateway.address, post(path, "k", "ten")).await.unwrap();
        let told = (answer.status, answer.code());
        assert_eq!(told, (503, Some("execution-not-started".to_owned())), "{path}");
    }
    let upstream = Scripted::start_at(address).await;
    for (before, path) in ["/hold", "/resend", "/probe", "/stripe"].into_iter().enumerate() {
        for is_replay in [false, true] {
            let answer = ask(gateway.address, post(path, "k", "ten")).await.unwrap();
            assert_eq!((answer.status, answer.is_replay()), (201, is_replay), "{path}");
        }
        assert_eq!(upstream.fences("k").len(), before + 1, "{path}");
    }
}

#[tokio::test]
async fn an_upstream_that_closes_while_it_is_sent_to_leaves_a_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = Setup::new(listener.local_addr().unwrap()).config(CONFIG).start().await;
    let accepted = tokio::spawn(async move {
        let mut times = 0;
        while let Ok((mut connection, _)) = listener.accept().await {
            connection.read_exact(&mut [0; 64]).await.unwrap();
            times += 1;
            if times == 1 {
                drop(connection);
            }
        }
    });
    let request = post("/hold", "k", &"x".repeat(900 << 10));
    let first = ask(gateway.address, &request).await.unwrap();
    assert_eq!((first.status, first.code()), (502, Some("execution-unanswered".to_owned())));
    let again = ask(gateway.address, &request).await.unwrap();
    assert_eq!((again.status, again.code()), (409, Some("outcome-in-doubt".to_owned())));
    accepted.abort();
}

#[tokio::test]
async fn which_whole_answers_are_kept_is_what_the_policy_says() {
    let world = World::start().await;
    let kept = [
        ("/terminal", [(500, false), (503, false), (422, true), (429, false), (302, true)]),
        ("/stripe", [(500, true), (503, true), (422, true), (429, false), (302, true)]),
        ("/success-only", [(500, false), (503, false), (422, false), (429, false), (302, false)]),
        ("/at-most-once", [(500, true), (503, true), (422, true), (429, true), (302, true)]),
    ];
    for (path, statuses) in kept {
        for (status, is_kept) in statuses {
            let key = format!("{}-{status}", &path[1..]);
            let turn = Turn { effect: true, said: answer(status, "refused"), then: None };
            world.upstream.plan(&key, [turn]);
            let first = world.ask(path, &key).await;
            assert_eq!((first.status, first.text()), (status, "refused"), "{key}");
            let again = world.ask(path, &key).await;
            assert_eq!(again.status, if is_kept { status } else { 201 }, "{key}");
            assert_eq!(again.is_replay(), is_kept, "{key}");
            let fences: &[&str] = if is_kept { &["1"] } else { &["1", "2"] };
            assert_eq!(world.upstream.fences(&key), fences, "{key}");
        }
    }
}

struct World {
    upstream: Scripted,
    gateway: Gateway,
}

impl World {
    async fn start() -> Arc<Self> {
        let upstream = Scripted::start().await;
        let gateway = Setup::new(upstream.address).config(CONFIG).start().await;
        Arc::new(Self { upstream, gateway })
    }

    async fn ask(&self, path: &str, key: &str) -> Answer {
        ask(self.gateway.address, post(path, key, "ten")).await.unwrap()
    }

    /// Checks every kind of broken answer at once; each has a key by its name.
    async fn with_every_broken_answer<F, Checked>(self: &Arc<Self>, effect: bool, check: F)
    where
        F: Fn(Arc<Self>, String, How) -> Checked,
        Checked: Future<Output = ()> + Send + 'static,
    {
        let broken = broken();
        for (name, said, then) in &broken {
            let turn = Turn { effect, said: said.clone(), then: Some(*then) };
            self.upstream.plan(name, [turn]);
        }
        let all = Many { at_once: broken.len() };
        all.each(broken, |(name, _, then)| check(Arc::clone(self), name.to_owned(), then)).await;
    }

    /// The client hears in the end what happened, once and for all.
    async fn ends_well(&self, path: &str, key: &str) {
        for _ in 0..2 {
            let answer = persist(self.gateway.address, &post(path, key, "ten")).await;
            assert_eq!((answer.status, answer.text()), (201, &receipt(key)[..]), "{key}");
        }
        assert_eq!(self.upstream.effects(key), 1, "{key}");
    }
}

/// What a client hears that waited for an answer that never came, or was none.
fn unanswered(how: How) -> u16 {
    match how {
        How::Silence => 504,
        How::Fin | How::Rst => 502,
    }
}
