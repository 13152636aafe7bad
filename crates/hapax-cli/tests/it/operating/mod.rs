//! What operators see: metrics and alerts, logs, readiness, and what they are told when something is
//! wrong.

mod alerts;
mod dashboard;
mod first_night;
mod logs;
mod mistakes;
mod readiness;
mod scrape;

use std::time::Duration;

pub(crate) use self::scrape::Scrape;
use crate::world::{Behaviour, Gateway, Setup, Upstream, ask, post, until};

/// A route that holds what it gets no answer to.
const IMPATIENT: &str = "sweep = \"200ms\"\n\
    [[route]]\nmatch = \"POST /pay\"\ntimeout = \"300ms\"\n";

/// An upstream that answers long after everybody has given up.
async fn slow_upstream() -> Upstream {
    let takes = Duration::from_secs(60);
    Upstream::start(Behaviour { takes, ..Behaviour::default() }).await
}

/// Has one request of this key time out.
async fn time_out(gateway: &Gateway, key: &str) {
    let answer = ask(gateway.address, post("/pay", key, "ten")).await.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (504, Some("execution-timed-out")));
}

#[tokio::test]
async fn a_timeout_is_not_counted_as_a_success_and_its_doubt_is_shown_until_it_is_resolved() {
    let upstream = slow_upstream().await;
    let setup = Setup::new(upstream.address).config(IMPATIENT).token("t");
    let mut gateway = setup.start().await;
    time_out(&gateway, "k").await;
    let in_doubt = r#"hapax_keys_in_doubt{route="POST /pay",age="under_1m"}"#;
    until("the doubt to be seen", async || {
        Scrape::of(&gateway).await.value(in_doubt) == Some("1".to_owned())
    })
    .await;
    let page = Scrape::of(&gateway).await;
    for (series, value) in [
        (r#"hapax_requests_total{route="POST /pay",verdict="executed"}"#, "0"),
        (r#"hapax_requests_total{route="POST /pay",verdict="unanswered"}"#, "1"),
        (r#"hapax_unanswered_total{code="execution-timed-out"}"#, "1"),
        (r#"hapax_upstream_requests_total{result="unanswered"}"#, "1"),
        ("hapax_left_in_doubt_total", "1"),
    ] {
        assert_eq!(page.value(series).as_deref(), Some(value), "{series}");
    }
    // What is stored counts, not what this process remembers.
    gateway.kill();
    gateway.run().await;
    until("the doubt to be seen again", async || {
        Scrape::of(&gateway).await.value(in_doubt) == Some("1".to_owned())
    })
    .await;
    let resolved = crate::hapax(&[
        "keys",
        "resolve",
        "--store",
        &gateway.store,
        "--key",
        "k",
        "--as",
        "released",
        "--even-if-running",
        "--why",
        "the bank never saw it",
        "--yes",
    ]);
    assert!(resolved.status.success(), "{}", crate::text(&resolved.stderr));
    until("the doubt to be gone", async || {
        Scrape::of(&gateway).await.value(in_doubt) == Some("0".to_owned())
    })
    .await;
}
