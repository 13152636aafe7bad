//! What nobody knows is found out, whatever door the retry comes through, and never guessed.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    truth_upstream::{Scripted, Turn, answer, receipt},
    world::{Answer, Behaviour, Gateway, Setup, Upstream, ask, free_address, persist, post, until},
};

/// An upstream that has its effect after the gateway gave it up, and that can be asked.
const SLOW: &str = r#"
sweep = "300ms"
[defaults]
timeout = "500ms"
lease = "1s"
keep_credentials = true
respond_async = true
recovery = "probe"
probe = "/by-key/{key}"
upstream_works_for = "3s"

[[route]]
match = "POST /plain"

[[route]]
match = "POST /accepted"
in_flight = "accept"

[[route]]
match = "POST /leaves-it"
recover_for = "0s"
"#;

fn thinks(millis: u64) -> Behaviour {
    Behaviour { thinks: Duration::from_millis(millis), ..Behaviour::default() }
}

fn with(request: &str, line: &str) -> String {
    request.replacen("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"), 1)
}

fn fences(upstream: &Upstream) -> Vec<String> {
    let posts = upstream.heads().into_iter().filter(|head| head.starts_with("POST"));
    posts.map(|head| head.split("hapax-fence\": \"").nth(1).unwrap()[..1].to_owned()).collect()
}

#[tokio::test]
async fn an_upstream_that_is_only_slow_has_one_effect_through_every_door() {
    tokio::join!(
        slow("/plain", ""),
        slow("/plain", "prefer: respond-async"),
        slow("/accepted", ""),
        slow("/leaves-it", ""),
        slow("/leaves-it", "prefer: respond-async"),
        slow("/leaves-it", "hapax-retry: never"),
    );
}

/// Retries by this door find out what became of a request that was given up.
async fn slow(path: &str, line: &str) {
    let upstream = Upstream::start(thinks(1500)).await;
    let gateway = Setup::new(upstream.address).config(SLOW).start().await;
    let plain = post(path, "k", "ten");
    let request = if line.is_empty() { plain.clone() } else { with(&plain, line) };
    ask(gateway.address, &plain).await.unwrap();
    let found = async || ask(gateway.address, &request).await.unwrap().is_replay();
    until("the answer to be found", found).await;
    sleep(Duration::from_secs(4)).await;
    assert_eq!(upstream.effects("k"), 1, "{path} {line}");
    assert_eq!(fences(&upstream).len(), 1, "{path} {line}");
}

#[tokio::test]
async fn a_gateway_that_died_while_an_upstream_was_slow_is_followed_by_one_that_asks() {
    for line in ["", "prefer: respond-async"] {
        let upstream = Upstream::start(thinks(2500)).await;
        let mut gateway = Setup::new(upstream.address).config(SLOW).start().await;
        let request = post("/plain", "k", "ten");
        let address = gateway.address;
        let sent = tokio::spawn({
            let request = request.clone();
            async move { ask(address, request).await }
        });
        until("it to be sent", async || !upstream.heads().is_empty()).await;
        gateway.kill();
        sent.await.unwrap();
        gateway.run().await;
        let retry = if line.is_empty() { request } else { with(&request, line) };
        let found =
            async || ask(gateway.address, &retry).await.is_some_and(|answer| answer.is_replay());
        until("the answer to be found", found).await;
        assert_eq!((upstream.effects("k"), fences(&upstream).len()), (1, 1), "{line}");
    }
}

#[tokio::test]
async fn what_did_not_happen_is_sent_again_when_nothing_can_be_at_work_any_more() {
    let upstream = Scripted::start().await;
    let broken = Turn {
        effect: false,
        said: b"HTTP/1.1 201".to_vec(),
        then: Some(crate::cuts_proxy::How::Rst),
    };
    upstream.plan("k", [broken]);
    let gateway = Setup::new(upstream.address).config(SLOW).start().await;
    let began = Instant::now();
    let answer = persist(gateway.address, &post("/plain", "k", "ten")).await;
    assert_eq!((answer.status, answer.text()), (201, &receipt("k")[..]));
    assert!(began.elapsed() >= Duration::from_secs(3), "a no counts after upstream_works_for");
    assert_eq!(upstream.fences("k"), ["1", "2"], "every sending has its own fence");
}

#[tokio::test]
async fn somebody_in_between_that_answers_for_the_service_leaves_a_doubt() {
    let config = "[[route]]\nmatch = \"POST /pay\"\n[[route]]\nmatch = \"POST /asked\"\n\
                  recovery = \"probe\"\nprobe = \"/by-key/{key}\"\nprobe_status = 202\n";
    let upstream = Scripted::start().await;
    let gateway = Setup::new(upstream.address).config(config).start().await;
    for status in [502, 504, 520, 524, 527] {
        let key = format!("k-{status}");
        let told = Turn { effect: true, said: answer(status, "bad gateway"), then: None };
        upstream.plan(&key, [told.clone()]);
        assert_eq!(ask(gateway.address, post("/pay", &key, "ten")).await.unwrap().status, status);
        for _ in 0..3 {
            let again = ask(gateway.address, post("/pay", &key, "ten")).await.unwrap();
            assert_eq!((again.status, again.code().as_deref()), (409, Some("outcome-in-doubt")));
        }
        let asked = format!("asked-{status}");
        upstream.plan(&asked, [told]);
        let found = ask(gateway.address, post("/asked", &asked, "ten")).await.unwrap();
        assert_eq!((found.status, found.text()), (202, &receipt(&asked)[..]), "the route's status");
        for key in [key, asked] {
            assert_eq!(upstream.effects(&key), 1, "{key}");
        }
    }
}

const ACCEPTS: &str = "sweep = \"300ms\"\n[defaults]\nkeep_credentials = true\n[[route]]\n\
                       match = \"POST /pay\"\nrespond_async = true\n";

async fn accepted(gateway: &Gateway, key: &str) -> String {
    let request = with(&post("/pay", key, "ten"), "prefer: respond-async");
    let accepted = ask(gateway.address, &request).await.unwrap();
    assert_eq!(accepted.status, 202);
    accepted.header("location").unwrap().to_owned()
}

async fn look(gateway: &Gateway, location: &str) -> Answer {
    let look = format!("GET {location} HTTP/1.1\r\nhost: a\r\nauthorization: alice\r\n\r\n");
    ask(gateway.address, look).await.unwrap()
}

#[tokio::test]
async fn what_was_accepted_while_the_upstream_was_away_is_done_when_it_is_back() {
    let address = free_address();
    let mut gateway = Setup::new(address).config(ACCEPTS).start().await;
    let location = accepted(&gateway, "k").await;
    sleep(Duration::from_millis(1500)).await;
    gateway.kill();
    gateway.run().await;
    let upstream = Scripted::start_at(address).await;
    until("it to be done", async || look(&gateway, &location).await.status == 201).await;
    assert_eq!(upstream.effects("k"), 1);
}

#[tokio::test]
async fn what_was_accepted_is_tried_again_when_the_upstream_says_not_now() {
    let upstream = Scripted::start().await;
    let gateway = Setup::new(upstream.address).config(ACCEPTS).start().await;
    for status in [429, 503, 425, 408] {
        let key = format!("k-{status}");
        upstream.plan(&key, [Turn { effect: false, said: answer(status, "later"), then: None }]);
        let location = accepted(&gateway, &key).await;
        until("it to be done", async || look(&gateway, &location).await.status == 201).await;
        assert_eq!(upstream.effects(&key), 1, "{status}");
    }
}

#[tokio::test]
async fn where_a_request_came_from_is_what_the_gateway_saw_also_when_it_is_run_later() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).config(ACCEPTS).start().await;
    let forged = "x-forwarded-for: 10.0.0.1\r\nx-forwarded-proto: https\r\n\
                  x-forwarded-host: evil.example\r\nconnection: x-forwarded-for, keep-alive";
    for (key, line) in [("plain", ""), ("later", "\r\nprefer: respond-async")] {
        let request = with(&post("/pay", key, "ten"), &format!("{forged}{line}"));
        ask(gateway.address, request).await.unwrap();
        until("it to be done", async || upstream.effects(key) == 1).await;
        let head = upstream.heads().pop().unwrap();
        for told in
            ["\"x-forwarded-proto\": \"http\"", "\"x-forwarded-host\": \"gateway\"", "127.0.0.1"]
        {
            assert!(head.contains(told), "{key}: {head}");
        }
        assert!(!head.contains("evil.example"), "{key}: {head}");
    }
}

#[tokio::test]
async fn a_rate_limit_counts_what_is_run_later() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = format!("{ACCEPTS}rate_limit = \"1/s\"\nburst = 1\n");
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    let mut refused = 0;
    for number in 0..20 {
        let request = with(&post("/pay", &format!("k-{number}"), "ten"), "prefer: respond-async");
        let answer = ask(gateway.address, request).await.unwrap();
        refused += usize::from(answer.status == 429);
    }
    assert!(refused >= 15, "{refused} of 20");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(upstream.total(), 20 - refused);
}
