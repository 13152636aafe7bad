//! The gateway's main job, as a new user meets it.

use crate::world::{Behaviour, Database, Gateway, Setup, Upstream, ask, post, until};

async fn a_retry_is_answered_with_the_first_answer(gateway: &Gateway, upstream: &Upstream) {
    let first = ask(gateway.address, post("/pay", "k1", "ten")).await.unwrap();
    assert_eq!((first.status, first.text()), (201, "receipt 1 for ten"));
    assert!(!first.is_replay());
    let again = ask(gateway.address, post("/pay", "k1", "ten")).await.unwrap();
    assert_eq!((again.status, &again.body, again.is_replay()), (201, &first.body, true));
    let other = ask(gateway.address, post("/pay", "k1", "eleven")).await.unwrap();
    assert_eq!((other.status, other.code().as_deref()), (422, Some("key-reused")));
    assert_eq!(upstream.total(), 1);
    let head = &upstream.heads()[0];
    assert!(head.contains("\"hapax-fence\": \"1\"") && head.contains("idempotency-key"), "{head}");
}

#[tokio::test]
async fn one_key_has_one_effect_on_every_store() {
    let database = Database::create().await;
    for store in [None, Some(database.url.as_str()), Some("memory:")] {
        let upstream = Upstream::start(Behaviour::default()).await;
        let setup = Setup::new(upstream.address);
        let setup = match store {
            Some(url) => setup.store(url),
            None => setup,
        };
        let gateway = setup.start().await;
        a_retry_is_answered_with_the_first_answer(&gateway, &upstream).await;
    }
}

#[tokio::test]
async fn an_answer_survives_the_death_of_the_gateway() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    let first = ask(gateway.address, post("/pay", "k1", "ten")).await.unwrap();
    gateway.kill();
    gateway.run().await;
    let again = ask(gateway.address, post("/pay", "k1", "ten")).await.unwrap();
    assert_eq!((again.status, &again.body, again.is_replay()), (201, &first.body, true));
    assert_eq!(upstream.effects("k1"), 1);
}

#[tokio::test]
async fn a_request_without_a_key_passes_where_none_is_required() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    let request = "POST /pay HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nten";
    for _ in 0..2 {
        let answer = ask(gateway.address, request).await.unwrap();
        assert_eq!((answer.status, answer.header("idempotency-expires")), (201, None));
    }
    assert_eq!(upstream.total(), 2);
}

#[tokio::test]
async fn told_to_stop_it_finishes_what_it_has_and_ends_well() {
    let takes = std::time::Duration::from_millis(500);
    let upstream = Upstream::start(Behaviour { takes, ..Behaviour::default() }).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    let asking = tokio::spawn(ask(gateway.address, post("/pay", "k1", "ten")));
    until("the request to arrive", async || upstream.total() == 1).await;
    gateway.signal("TERM");
    assert_eq!(asking.await.unwrap().unwrap().status, 201);
    assert!(gateway.ended().await);
    assert!(ask(gateway.address, post("/pay", "k2", "ten")).await.is_none());
}
