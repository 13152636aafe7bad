//! Retries happen at one layer: `Hapax-Retry: never` says that it is one further out.

use std::time::Duration;

use hapax_core::{Recovery, StateTag};
use hapax_tower::{ProbeAnswer, Prober, Protection, ResultPolicy};
use tokio::time::{Instant, sleep};

use crate::{
    script::{
        Act::{Breaks, CannotBeReached, Hangs, Refuses, Resembles, Says, SaysWait},
        Process,
    },
    world::{Wire, policy},
};

const NEVER: (&str, &str) = ("hapax-retry", "never");

fn resend() -> Protection {
    let policy = policy(Recovery::Resend);
    Protection { policy, ..Protection::default() }
}

async fn state(store: &Wire) -> StateTag {
    store.all().await[0].stamp.tag
}

fn never() -> Option<String> {
    Some("never".to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_first_doubt_ends_the_turn_and_the_next_request_sends_again_at_once() {
    let process = Process::start(&Wire::new(), resend(), &[Breaks, Breaks, Says(201)]);
    let began = Instant::now();
    for _ in 0..2 {
        process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    }
    let answer = process.send_with(&[NEVER]).await;
    assert_eq!(
        (answer.status, answer.is_replay(), &answer.body[..]),
        (201, false, &b"answer 3"[..])
    );
    assert_eq!(process.fences(), ["1", "2", "3"]);
    assert_eq!(process.told("hapax-retry"), [never(), never(), never()]);
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert!(process.send("").await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_repeats_is_finished_all_the_same() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Breaks, Breaks, Says(201)]);
    process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    process.asked(3).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(state(&store).await, StateTag::Completed);
    assert_eq!(process.told("hapax-retry"), [never(), never(), never()]);
    assert!(process.send_with(&[NEVER]).await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_keeps_no_requests_leaves_it_to_the_next_one() {
    let store = Wire::new();
    let process = Process::start_without_later(&store, resend(), &[Breaks, Says(409), Says(201)]);
    process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    sleep(Duration::from_secs(120)).await;
    assert_eq!((state(&store).await, process.fences().len()), (StateTag::InDoubt, 1));
    process.send_with(&[NEVER]).await.check(409, "key-in-flight");
    assert_eq!(process.send_with(&[NEVER]).await.status, 201);
    assert_eq!(process.fences(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_repeats_by_itself_says_so_to_the_service() {
    let process = Process::start(&Wire::new(), resend(), &[Breaks, Says(201)]);
    assert_eq!(process.send_with(&[("hapax-deadline", "9000")]).await.status, 201);
    assert_eq!(process.told("hapax-retry"), [None, never()]);
    let time = |millis: &str| Some(millis.to_owned());
    assert_eq!(process.told("hapax-deadline"), [time("9000"), time("25000")]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_to_be_left_alone_is_not_sent_anything_meanwhile() {
    let script = [Breaks, SaysWait(503, 7), Says(201)];
    let process = Process::start(&Wire::new(), resend(), &script);
    process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    for _ in 0..2 {
        let told = process.send_with(&[NEVER]).await;
        told.check(409, "key-in-flight");
        assert_eq!(told.header("retry-after"), Some("7"));
    }
    assert_eq!(process.fences(), ["1", "2"]);
    sleep(Duration::from_secs(7)).await;
    assert_eq!(process.send_with(&[NEVER]).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn that_a_repetition_never_left_does_not_end_the_doubt() {
    let store = Wire::new();
    let script = [Breaks, CannotBeReached, Says(201)];
    let process = Process::start(&store, resend(), &script);
    process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    process.send_with(&[NEVER]).await.check(409, "key-in-flight");
    assert_eq!(state(&store).await, StateTag::Running);
    assert_eq!(process.send_with(&[NEVER]).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn where_somebody_can_be_asked_the_next_request_stays_until_it_is_known() {
    let policy = policy(Recovery::Probe).working_for(Duration::ZERO);
    let answers = std::sync::Mutex::new(vec![ProbeAnswer::DidNotHappen, ProbeAnswer::Unknown]);
    let prober = Prober::from_fn(move |_| {
        let answer = answers.lock().unwrap().pop().unwrap_or(ProbeAnswer::DidNotHappen);
        async move { answer }
    });
    let protection = Protection { policy, probe: Some(prober), ..Protection::default() };
    let process = Process::start(&Wire::new(), protection, &[Breaks, Says(201)]);
    process.send_with(&[NEVER]).await.check(502, "execution-unanswered");
    assert_eq!(process.fences(), ["1"]);
    assert_eq!(process.send_with(&[NEVER]).await.status, 201);
    assert_eq!(process.fences(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_repeats_is_not_kept_waiting_beyond_its_time() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Hangs, Says(201)]);
    let began = Instant::now();
    let told = process.send_with(&[NEVER, ("hapax-deadline", "2000")]).await;
    told.check(504, "execution-timed-out");
    assert_eq!(began.elapsed().as_secs(), 2);
    process.send_with(&[NEVER, ("hapax-deadline", "2000")]).await.check(409, "key-in-flight");
    sleep(Duration::from_secs(24)).await;
    assert_eq!(process.send_with(&[NEVER]).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_further_in_that_says_to_ask_again_is_never_kept() {
    for (status, code) in [(409, "key-in-flight"), (409, "outcome-in-doubt"), (503, "overloaded")] {
        for results in [ResultPolicy::Terminal, ResultPolicy::Stripe] {
            let policy = policy(Recovery::Hold);
            let protection = Protection { policy, results, ..Protection::default() };
            let script = [Refuses(status, code), Says(201)];
            let process = Process::start(&Wire::new(), protection, &script);
            assert_eq!(process.send("").await.status, status, "{code}");
            assert_eq!(process.send("").await.status, 201, "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_problem_that_resembles_a_refusal_is_an_answer_like_any_other() {
    for (status, code) in [(409, "key-in-flight"), (409, "outcome-in-doubt"), (503, "overloaded")] {
        let (policy, results) = (policy(Recovery::Hold), ResultPolicy::Stripe);
        let protection = Protection { policy, results, ..Protection::default() };
        let script = [Resembles(status, code), Says(201)];
        let process = Process::start(&Wire::new(), protection, &script);
        assert_eq!(process.send("").await.status, status, "{code}");
        let replay = process.send("").await;
        assert_eq!((replay.status, replay.is_replay()), (status, true), "{code}");
        assert_eq!(process.fences(), ["1"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_further_in_is_passed_on_with_its_mark() {
    let script = [Refuses(409, "key-in-flight")];
    let process = Process::start(&Wire::new(), Protection::default(), &script);
    assert_eq!(process.send("").await.header("hapax-refusal"), Some("key-in-flight"));
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_further_in_is_found_out_by_whoever_repeats() {
    let unknown = [Refuses(504, "execution-timed-out"), Refuses(502, "execution-unanswered")];
    let script = [unknown[0], unknown[1], Refuses(409, "key-in-flight"), Says(201)];
    let process = Process::start(&Wire::new(), resend(), &script);
    assert_eq!(process.send("").await.status, 201);
    assert_eq!(process.fences(), ["1", "2", "3", "4"]);
}
