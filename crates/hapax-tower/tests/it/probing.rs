//! Somebody is asked whether an operation happened before it is sent again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{Recovery, ResultPolicy, StateTag};
use hapax_tower::{Asked, Probed, Prober, Protection};
use http::Response;

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
    Unknown,
    Panics,
    SaysLateThatItDidNot,
}

/// Says these words in turn, and remembers what it was asked.
fn prober(words: &[Word]) -> (Prober, Arc<Mutex<Vec<Asked>>>) {
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
                    Probed::Happened(response.body("it happened".into()).unwrap())
                }
                Word::DidNotHappen => Probed::DidNotHappen,
                Word::Unknown => Probed::Unknown,
                Word::Panics => panic!("the prober gave up"),
                Word::SaysLateThatItDidNot => {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    Probed::DidNotHappen
                }
            }
        }
    });
    (prober, asked)
}

fn probing(prober: Prober) -> Protection {
    let policy = policy(ResultPolicy::Terminal, Recovery::Probe);
    Protection { policy, probe: Some(prober), ..Protection::default() }
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
    assert_eq!((process.fences(), asked.lock().unwrap().len()), (vec!["1".to_owned(); 3], 3));
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
        (&[Word::DidNotHappen], 201, 2),
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
    let began = tokio::time::Instant::now();
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
            Probed::DidNotHappen
        }
    });
    let protection = Protection { recover_for: Duration::from_secs(300), ..probing(prober) };
    let process = Process::start(&store, protection, &[Breaks; 100]);
    process.send("").await.check(502, "execution-unanswered");
    assert_eq!(process.fences().len(), 2);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(process.fences().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_owner_vanished_is_asked_about_by_the_next_process() {
    for (words, body, sent) in [
        (&[Word::Unknown, Word::Happened(200)][..], &b"it happened"[..], 0),
        (&[Word::DidNotHappen], b"answer 1", 1),
    ] {
        let store = Wire::new();
        vanish(&store).await;
        let (prober, asked) = prober(words);
        let process = Process::start(&store, probing(prober), &[Says(201)]);
        while asked.lock().unwrap().len() < words.len() {
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
