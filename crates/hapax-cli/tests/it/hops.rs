//! What callers say hop by hop, through the gateway: how long they wait, and who retries.

use std::time::Duration;

use tokio::time::Instant;

use crate::world::{Answer, Behaviour, Raw, Setup, Upstream, ask, until};

/// A payment of ten under this key, with these lines in its head.
fn pay(key: &str, lines: &str) -> String {
    let lines = format!("idempotency-key: {key}\r\nauthorization: alice\r\n{lines}");
    format!("POST /pay HTTP/1.1\r\nhost: a\r\n{lines}content-length: 3\r\n\r\nten")
}

fn get(lines: &str) -> String {
    format!("GET /pay HTTP/1.1\r\nhost: a\r\n{lines}\r\n")
}

/// The value of this line of a head, as either kind of upstream shows it.
fn told(head: &str, name: &str) -> Option<String> {
    let head = head.replace(['"', '{', '}'], "").to_ascii_lowercase();
    let mut lines = head.split(['\r', '\n', ',']).map(str::trim);
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.split(' ').find(|word| !word.is_empty())?.to_owned())
}

fn time(head: &str) -> u64 {
    told(head, "hapax-deadline").unwrap().parse().unwrap()
}

fn said(answer: &Answer) -> (u16, Option<String>) {
    (answer.status, answer.code())
}

fn refused(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

#[tokio::test]
async fn the_upstream_hears_what_is_left_and_never_more_than_the_gateway_waits() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    for (request, most) in [
        (pay("a", "hapax-deadline: 9000\r\n"), 9_000),
        (pay("b", "hapax-deadline: 600000\r\n"), 25_000),
        (get("hapax-deadline: 9000\r\n"), 9_000),
        (get("hapax-deadline: 600000\r\nconnection: hapax-deadline\r\n"), 60_000),
    ] {
        ask(gateway.address, &request).await.unwrap();
        let heard = time(upstream.heads().last().unwrap());
        assert!((most - 3_000..=most).contains(&heard), "{heard} of {most}");
    }
    ask(gateway.address, pay("c", "grpc-timeout: 9S\r\n")).await.unwrap();
    let head = upstream.heads().pop().unwrap();
    assert_eq!(told(&head, "hapax-deadline"), None, "{head}");
    assert_eq!(told(&head, "grpc-timeout").as_deref(), Some("9s"), "{head}");
}

#[tokio::test]
async fn grpc_timeout_is_understood_where_a_route_asks_for_it() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[[route]]\nmatch = \"POST /pay\"\ngrpc_timeout = true\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    ask(gateway.address, pay("a", "grpc-timeout: 9S\r\n")).await.unwrap();
    let head = upstream.heads().pop().unwrap();
    assert!((6_000..=9_000).contains(&time(&head)), "{head}");
    let micros = told(&head, "grpc-timeout").unwrap();
    let micros: u64 = micros.strip_suffix('u').unwrap().parse().unwrap();
    assert!((6_000_000..=9_000_000).contains(&micros), "{head}");
}

#[tokio::test]
async fn what_is_no_time_or_none_left_never_reaches_the_upstream() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    for (line, refusal) in [
        ("hapax-deadline: soon\r\n", refused(400, "deadline-malformed")),
        ("hapax-deadline: 1\r\nhapax-deadline: 1\r\n", refused(400, "deadline-malformed")),
        ("hapax-deadline: 0\r\n", refused(504, "deadline-passed")),
    ] {
        for request in [pay("k", line), get(line)] {
            assert_eq!(said(&ask(gateway.address, &request).await.unwrap()), refusal, "{request}");
        }
    }
    assert!(upstream.heads().is_empty());
    assert_eq!(ask(gateway.address, pay("k", "")).await.unwrap().status, 201);
}

#[tokio::test]
async fn nobody_is_kept_waiting_beyond_its_time_and_the_answer_is_found_later() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    upstream.silence(true);
    let unprotected = "POST /pay HTTP/1.1\r\nhost: a\r\nhapax-deadline: 1000\r\n\
                       content-length: 3\r\n\r\nten";
    for request in [pay("k", "hapax-deadline: 1000\r\n"), unprotected.to_owned()] {
        let began = Instant::now();
        let answer = ask(gateway.address, &request).await.unwrap();
        assert_eq!(said(&answer), refused(504, "execution-timed-out"));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    upstream.silence(false);
    let answer = ask(gateway.address, pay("k", "prefer: wait=20\r\n")).await.unwrap();
    assert_eq!((answer.status, answer.is_replay(), upstream.effects("k")), (201, true, 1));
}

#[tokio::test]
async fn a_request_whose_time_ends_in_the_queue_for_a_connection_is_never_sent() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "workers = 1\n[upstream]\nconnections = 1\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    upstream.silence(true);
    let first = tokio::spawn(ask(gateway.address, pay("first", "")));
    until("the first to arrive", async || upstream.total() == 1).await;
    let late = ask(gateway.address, pay("late", "hapax-deadline: 200\r\n")).await.unwrap();
    assert_eq!(said(&late), refused(504, "execution-timed-out"));
    upstream.silence(false);
    assert_eq!(first.await.unwrap().unwrap().status, 201);
    let mut again = None;
    until("the late one to be given back", async || {
        let answer = ask(gateway.address, pay("late", "")).await.unwrap();
        again = (answer.status == 201).then_some(answer);
        again.is_some()
    })
    .await;
    assert!(!again.unwrap().is_replay());
    assert_eq!(upstream.effects("late"), 1);
}

/// An upstream that breaks its first answer off, and then answers.
async fn breaking_once() -> Raw {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Raw::start(move |_| {
        let said: &[u8] = match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => b"HTTP/1.1 201 Created\r\nconnection: close\r\nx",
            _ => b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\npaid",
        };
        said.to_vec()
    })
    .await
}

const RESEND: &str = "[[route]]\nmatch = \"POST /pay\"\nrecovery = \"resend\"\n";

#[tokio::test]
async fn whoever_retries_further_out_is_told_of_the_first_doubt_and_the_next_request_sends_again() {
    let upstream = breaking_once().await;
    let gateway = Setup::new(upstream.address).config(RESEND).start().await;
    let request = pay("k", "hapax-retry: never\r\nconnection: hapax-retry\r\n");
    let doubt = ask(gateway.address, &request).await.unwrap();
    assert_eq!(said(&doubt), refused(502, "execution-unanswered"));
    assert_eq!(upstream.heads().len(), 1);
    let answer = ask(gateway.address, pay("k", "hapax-retry: never\r\n")).await.unwrap();
    // The sweeper may have been faster.
    assert!(matches!(answer.status, 201 | 409), "{answer:?}");
    until("the second sending", async || upstream.heads().len() == 2).await;
    let heard = |head: &String| told(head, "hapax-retry").as_deref() == Some("never");
    assert!(upstream.heads().iter().all(heard), "{:?}", upstream.heads());
}

#[tokio::test]
async fn the_gateway_repeats_by_itself_where_nobody_else_does_and_says_so() {
    let upstream = breaking_once().await;
    let gateway = Setup::new(upstream.address).config(RESEND).start().await;
    assert_eq!(ask(gateway.address, pay("k", "")).await.unwrap().text(), "paid");
    let heard: Vec<_> = upstream.heads().iter().map(|head| told(head, "hapax-retry")).collect();
    assert_eq!(heard, [None, Some("never".to_owned())]);
}

#[tokio::test]
async fn gateways_behind_each_other_agree_on_one_effect_and_keep_no_refusal() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let inner = Setup::new(upstream.address).start().await;
    let outer = Setup::new(inner.address).start().await;
    upstream.silence(true);
    let short = pay("k", "hapax-deadline: 500\r\nhapax-retry: never\r\n");
    assert_eq!(ask(outer.address, &short).await.unwrap().status, 504);
    until("the outer gateway to hear of the inner one's work", async || {
        let answer = ask(outer.address, &short).await.unwrap();
        matches!(said(&answer), (409, Some(code)) if code == "key-in-flight")
            && upstream.effects("k") == 1
    })
    .await;
    upstream.silence(false);
    let mut answer = None;
    until("the answer", async || {
        let heard = ask(outer.address, pay("k", "")).await.unwrap();
        answer = (heard.status == 201).then_some(heard);
        answer.is_some()
    })
    .await;
    assert_eq!(answer.unwrap().text(), "receipt 1 for ten");
    assert!(ask(outer.address, pay("k", "")).await.unwrap().is_replay());
    assert_eq!(upstream.effects("k"), 1);
}
