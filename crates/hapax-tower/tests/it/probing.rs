//! Somebody is asked whether an operation happened before it is sent again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{Recovery, StateTag};
use hapax_tower::{InFlight, KeptCredentials, ProbeAnswer, ProbeRequest, Prober, Protection};
use http::Response;
use tokio::time::Instant;

use crate::{
    script::{
        Act::{self, Breaks, Says},
        Process,
    },
    world::{Wire, policy},
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Word {
    Happened(u16),
    DidNotHappen,
    AtWork,
    Unknown,
    Panics,
    SaysLateThatItDidNot,
}

/// Says these words in turn, and remembers what it was asked.
fn prober(words: &[Word]) -> (Prober, Arc<Mutex<Vec<ProbeRequest>>>) {
    let words = Mutex::new(words.iter().copied().collect::<VecDeque<_>>());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let prober = Prober::from_fn(move |question| {
        heard.lock().unwrap().push(question);
        let word = words.lock().unwrap().pop_front().unwrap_or(Word::Unknown);
        async move {
            match word {
                Word::Happened(status) => {
                    let response = Response::builder().status(status).header("x-found", "yes");
                    ProbeAnswer::Happened(response.body("it happened".into()).unwrap())
                }
                Word::DidNotHappen => ProbeAnswer::DidNotHappen,
                Word::AtWork => ProbeAnswer::AtWork,
                Word::Unknown => ProbeAnswer::Unknown,
                Word::Panics => panic!("the prober gave up"),
                Word::SaysLateThatItDidNot => {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    ProbeAnswer::DidNotHappen
                }
            }
        }
    });
    (prober, asked)
}

/// A service that stops at once when it is given up.
fn probing(prober: Prober) -> Protection {
    working_for(prober, Duration::ZERO)
}

fn working_for(prober: Prober, works_for: Duration) -> Protection {
    let policy = policy(Recovery::Probe).working_for(works_for);
    Protection { policy, probe: Some(prober), ..Protection::default() }
}

const WORKS_FOR: Duration = Duration::from_secs(40);

#[tokio::test(start_paused = true)]
async fn a_no_is_not_believed_while_the_first_sending_may_be_at_work() {
    let (prober, asked) = prober(&[Word::DidNotHappen; 100]);
    let process =
        Process::start(&Wire::new(), working_for(prober, WORKS_FOR), &[Breaks, Says(201)]);
    let began = Instant::now();
    process.send("").await.check(502, "execution-unanswered");
    assert!(began.elapsed() < WORKS_FOR, "nothing is decided before its client's time is over");
    assert_eq!(process.fences(), ["1"]);
    process.asked(2).await;
    assert!(began.elapsed() >= WORKS_FOR);
    assert!(asked.lock().unwrap().len() > 2, "somebody may say yes any time");
    assert_eq!(process.fences(), ["1", "2"]);
    assert!(process.send("wait=9").await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_believed_at_once_and_a_service_that_says_it_is_at_work_is_asked_again() {
    let words = [Word::DidNotHappen, Word::AtWork, Word::AtWork, Word::Happened(201)];
    let (prober, _) = prober(&words);
    let process = Process::start(&Wire::new(), working_for(prober, WORKS_FOR), &[Act::Hangs]);
    let began = Instant::now();
    process.send("").await.check(504, "execution-timed-out");
    let answer = process.send("wait=9").await;
    assert_eq!((answer.status, &answer.body[..]), (201, &b"it happened"[..]));
    assert!(began.elapsed() < 2 * WORKS_FOR);
    assert_eq!(process.fences(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_still_at_work_when_it_should_not_be_is_never_sent_it_again() {
    let (prober, _) = prober(&[Word::AtWork; 1000]);
    let store = Wire::new();
    let process = Process::start(&store, working_for(prober, WORKS_FOR), &[Breaks]);
    process.send("").await.check(502, "execution-unanswered");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(store.all().await[0].stamp.tag, StateTag::InDoubt);
    assert_eq!(process.fences(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn retries_that_ask_too_early_do_not_put_off_the_time_when_a_no_counts() {
    for further_out in ["", "never"] {
        let (prober, _) = prober(&[Word::DidNotHappen; 1000]);
        let protection =
            Protection { recover_for: Duration::ZERO, ..working_for(prober, WORKS_FOR) };
        let process = Process::start(&Wire::new(), protection, &[Breaks, Says(201)]);
        process.send("").await.check(502, "execution-unanswered");
        let began = Instant::now();
        let mut answer = process.send_with(&[("hapax-retry", further_out)]).await;
        while answer.status != 201 {
            assert!(began.elapsed() < 2 * WORKS_FOR, "it is put off for ever");
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = process.send_with(&[("hapax-retry", further_out)]).await;
        }
        assert!(began.elapsed() >= WORKS_FOR);
        assert_eq!(process.fences(), ["1", "2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_error_is_asked_about_and_not_forgotten() {
    for status in [500, 502, 503, 504] {
        let (prober, asked) = prober(&[Word::Happened(201)]);
        let process = Process::start(&Wire::new(), working_for(prober, WORKS_FOR), &[Says(status)]);
        assert_eq!(process.send("").await.status, 201);
        assert_eq!((process.fences().len(), asked.lock().unwrap().len()), (1, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_does_not_wait_asks_as_any_other() {
    for accepts in [InFlight::Accept, InFlight::Reject] {
        for first in [Breaks, Act::Panics, Says(502)] {
            let (prober, asked) = prober(&[Word::Happened(201)]);
            let protection = Protection {
                recover_for: Duration::ZERO,
                in_flight: InFlight::Reject,
                ..working_for(prober, WORKS_FOR)
            };
            let store = Wire::new();
            let waits = Process::start(&store, protection.clone(), &[first]);
            waits.send("").await;
            assert_eq!(store.all().await[0].stamp.tag, StateTag::InDoubt);
            let protection = Protection {
                in_flight: accepts,
                respond_async: true,
                credentials: KeptCredentials::Keep,
                ..protection
            };
            let hurries = Process::start(&store, protection, &[]);
            let accepted = hurries.send("respond-async").await;
            assert_eq!(accepted.status, 202);
            let answer = hurries.send("wait=9").await;
            assert_eq!((answer.status, &answer.body[..]), (201, &b"it happened"[..]));
            let sent = waits.fences().len() + hurries.fences().len();
            assert_eq!((sent, asked.lock().unwrap().len()), (1, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_answered_with_what_the_prober_found_and_not_sent_again() {
    let (prober, asked) = prober(&[Word::Unknown, Word::Panics, Word::Happened(201)]);
    let process = Process::start(&Wire::new(), probing(prober), &[Breaks]);
    let answer = process.send("").await;
    assert_eq!((answer.status, &answer.body[..]), (201, &b"it happened"[..]));
    let again = process.send("").await;
    assert!(again.is_replay() && again.header("x-found") == Some("yes"));
    assert_eq!(process.fences(), ["1"]);
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].operation.key().as_str()), (3, "k-1"));
    assert_eq!(
        (asked[0].request.uri().path(), &asked[0].request.body()[..]),
        ("/pay", &b"100"[..])
    );
}

#[tokio::test(start_paused = true)]
async fn what_did_not_happen_is_sent_again_and_asked_about_again_if_that_fails_too() {
    let (prober, asked) = prober(&[Word::DidNotHappen, Word::DidNotHappen, Word::Happened(200)]);
    let script = [Breaks, Breaks, Says(409)];
    let process = Process::start(&Wire::new(), probing(prober), &script);
    assert_eq!(process.send("").await.status, 200);
    assert_eq!(
        (process.fences(), asked.lock().unwrap().len()),
        (vec!["1".to_owned(), "2".to_owned(), "3".to_owned()], 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_answer_is_nothing_to_ask_about() {
    let (prober, asked) = prober(&[]);
    let process = Process::start(&Wire::new(), probing(prober), &[Says(201)]);
    assert_eq!(process.send("").await.status, 201);
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_stays_in_doubt_and_is_never_sent_again() {
    let (prober, _) = prober(&[]);
    let store = Wire::new();
    let process = Process::start(&store, probing(prober), &[Breaks]);
    process.send("").await.check(502, "execution-unanswered");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.all().await[0].stamp.tag, StateTag::InDoubt);
    assert_eq!(process.fences(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_would_free_the_key_does_not_prove_that_it_happened() {
    let (prober, _) = prober(&[Word::Happened(500), Word::Happened(429), Word::Happened(200)]);
    let process = Process::start(&Wire::new(), probing(prober), &[Breaks]);
    assert_eq!(process.send("").await.status, 200);
    assert_eq!(process.fences(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_request_asks_where_the_first_did_not_find_out() {
    for (words, status, sent) in [
        (&[Word::Happened(200)][..], 200, 1),
        (&[Word::DidNotHappen; 50], 201, 2),
        (&[Word::Unknown], 409, 1),
    ] {
        let (prober, _) = prober(words);
        let protection = Protection { recover_for: Duration::ZERO, ..probing(prober) };
        let process = Process::start(&Wire::new(), protection, &[Breaks, Says(201)]);
        process.send("").await.check(502, "execution-unanswered");
        assert_eq!((process.send("").await.status, process.fences().len()), (status, sent));
    }
}

#[tokio::test(start_paused = true)]
async fn asking_and_sending_together_hold_up_no_client() {
    let (prober, _) = prober(&[Word::SaysLateThatItDidNot]);
    let store = Wire::new();
    let process = Process::start(&store, probing(prober), &[Act::Panics, Act::Hangs]);
    process.send("").await.check(500, "execution-panicked");
    tokio::time::sleep(Duration::from_secs(70)).await;
    let began = Instant::now();
    process.send("").await.check(504, "execution-timed-out");
    assert_eq!(began.elapsed().as_secs(), 25);
    assert_eq!(process.fences(), ["1", "2"]);
    assert_eq!(store.all().await[0].stamp.tag, StateTag::Running);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_on_the_word_of_a_prober_after_the_lease_is_over() {
    let store = Wire::new();
    let wire = store.clone();
    let prober = Prober::from_fn(move |_| {
        wire.away(true);
        async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            ProbeAnswer::DidNotHappen
        }
    });
    let protection = Protection { recover_for: Duration::from_secs(300), ..probing(prober) };
    let process = Process::start(&store, protection, &[Breaks; 100]);
    process.send("").await.check(502, "execution-unanswered");
    assert_eq!(process.fences().len(), 1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(process.fences().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_owner_vanished_is_asked_about_by_the_next_process() {
    for (words, body, sent) in [
        (&[Word::Unknown, Word::Happened(200)][..], &b"it happened"[..], 0),
        (&[Word::DidNotHappen; 50], b"answer 1", 1),
    ] {
        let store = Wire::new();
        vanish(&store).await;
        let (prober, asked) = prober(words);
        let process = Process::start(&store, probing(prober), &[Says(201)]);
        let is_done = || {
            let asked = asked.lock().unwrap().len();
            asked >= words.len().min(2) && process.fences().len() >= sent
        };
        while !is_done() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let answer = process.send("wait=9").await;
        assert!(answer.is_replay());
        assert_eq!((&answer.body[..], process.fences().len()), (body, sent));
        assert!(!asked.lock().unwrap()[0].request.headers().contains_key("authorization"));
    }
}

/// A process claims the operation, sends it, and is not heard of again.
async fn vanish(store: &Wire) {
    let (prober, _) = prober(&[]);
    let process = Process::start(store, probing(prober), &[Act::Hangs]);
    let asking = process.clone();
    let asking = tokio::spawn(async move { asking.send("").await });
    process.asked(1).await;
    store.away(true);
    asking.await.unwrap();
    drop(process);
    tokio::time::sleep(Duration::from_secs(120)).await;
    store.away(false);
}
