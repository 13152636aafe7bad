//! An attempt that nobody answered is looked after until it is known what happened.

use std::time::Duration;

use hapax_core::{Recovery, StateTag};
use hapax_tower::{Protection, ResultPolicy};
use tokio::time::{Instant, sleep};

use crate::{
    script::{
        Act::{Breaks, CannotBeReached, Hangs, Panics, Says, SaysWait},
        Process,
    },
    world::{Wire, policy},
};

fn resend() -> Protection {
    let policy = policy(Recovery::Resend);
    Protection { policy, ..Protection::default() }
}

async fn state(store: &Wire) -> StateTag {
    store.all().await[0].stamp.tag
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_request_is_sent_again_and_its_client_hears_the_answer() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Breaks, Says(201)]);
    let began = Instant::now();
    let answer = process.send("").await;
    assert_eq!((answer.status, &answer.body[..]), (201, &b"answer 2"[..]));
    assert!(began.elapsed() < Duration::from_millis(200));
    assert_eq!(process.fences(), ["1", "2"], "every sending has its own fence");
    let again = process.send("").await;
    assert!(again.is_replay());
    assert_eq!(again.body, answer.body);
}

#[tokio::test(start_paused = true)]
async fn what_says_not_now_to_a_repeated_request_is_never_taken_for_its_answer() {
    let store = Wire::new();
    let script = [Breaks, Says(409), Says(425), Says(429), Says(503), CannotBeReached, Says(201)];
    let process = Process::start(&store, resend(), &script);
    assert_eq!(process.send("").await.status, 201);
    assert_eq!(process.fences(), ["1", "2", "3", "4", "5", "6"]);
    assert!(process.send("").await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_counts_whatever_it_says() {
    for (status, state_after) in [(409, StateTag::Failed), (429, StateTag::Released)] {
        let store = Wire::new();
        let process = Process::start(&store, resend(), &[Says(status)]);
        assert_eq!(process.send("").await.status, status);
        assert_eq!((process.fences().len(), state(&store).await), (1, state_after));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_error_is_sent_again_to_a_service_that_deduplicates() {
    for status in [500, 502, 503, 504, 524, 599] {
        let store = Wire::new();
        let process = Process::start(&store, resend(), &[Says(status), Says(201)]);
        let answer = process.send("").await;
        assert_eq!((answer.status, process.fences()), (201, vec!["1".into(), "2".into()]));
        assert!(process.send("").await.is_replay());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_somebody_in_between_is_none() {
    for results in [ResultPolicy::Terminal, ResultPolicy::SuccessOnly] {
        for status in [502, 504, 520, 527, 600, 999] {
            let protection =
                Protection { policy: policy(Recovery::Hold), results, ..Protection::default() };
            let store = Wire::new();
            let process = Process::start(&store, protection, &[Says(status), Says(201)]);
            assert_eq!(process.send("").await.status, status);
            assert_eq!(state(&store).await, StateTag::InDoubt, "{status}");
            process.send("").await.check(409, "outcome-in-doubt");
            assert_eq!(process.fences(), ["1"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_was_done_frees_the_key_under_every_policy() {
    for results in [
        ResultPolicy::Terminal,
        ResultPolicy::Stripe,
        ResultPolicy::SuccessOnly,
        ResultPolicy::AtMostOnce,
    ] {
        for recovery in [Recovery::Hold, Recovery::Resend] {
            for act in [Says(425), SaysWait(503, 1)] {
                let protection =
                    Protection { policy: policy(recovery), results, ..Protection::default() };
                let process = Process::start(&Wire::new(), protection, &[act, Says(201)]);
                assert!(matches!(process.send("").await.status, 425 | 503));
                assert_eq!(process.send("").await.status, 201, "{results:?} {recovery:?} {act:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_to_be_left_alone_is() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Breaks, SaysWait(429, 16), Says(201)]);
    let began = Instant::now();
    assert_eq!(process.send("").await.status, 201);
    assert!((16..=20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_when_its_time_is_over_and_the_answer_is_found_without_it() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Hangs, Says(201)]);
    let began = Instant::now();
    let told = process.send("").await;
    told.check(504, "execution-timed-out");
    assert_eq!(began.elapsed().as_secs(), 25);
    assert!(told.header("retry-after").is_some() && told.json()["operation"].is_string());
    process.send("").await.check(409, "key-in-flight");
    let answer = process.send("wait=9").await;
    assert!(answer.is_replay());
    assert_eq!((answer.status, &answer.body[..]), (201, &b"answer 2"[..]));
}

#[tokio::test(start_paused = true)]
async fn what_stays_unknown_is_in_doubt_when_the_time_for_finding_out_is_over() {
    let store = Wire::new();
    let process = Process::start(&store, resend(), &[Breaks; 100]);
    process.send("").await.check(502, "execution-unanswered");
    assert_eq!(state(&store).await, StateTag::Running);
    sleep(Duration::from_secs(40)).await;
    assert_eq!(state(&store).await, StateTag::InDoubt);
    let turns = process.fences();
    assert!((15..30).contains(&turns.len()), "{turns:?}");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(process.fences(), turns);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_end_is_never_forgotten_because_a_later_sending_never_left() {
    let store = Wire::new();
    let mut script = vec![Breaks];
    script.resize(100, CannotBeReached);
    let process = Process::start(&store, resend(), &script);
    process.send("").await.check(502, "execution-unanswered");
    sleep(Duration::from_secs(60)).await;
    assert_eq!((state(&store).await, process.fences().len()), (StateTag::InDoubt, 1));
}

#[tokio::test(start_paused = true)]
async fn a_doubt_stays_when_whoever_took_over_sent_nothing() {
    let store = Wire::new();
    let mut script = vec![Panics];
    script.resize(100, CannotBeReached);
    let process = Process::start(&store, resend(), &script);
    process.send("").await.check(500, "execution-panicked");
    process.send("").await.check(409, "key-in-flight");
    sleep(Duration::from_secs(60)).await;
    assert_eq!((state(&store).await, process.fences().len()), (StateTag::InDoubt, 1));
}

#[tokio::test(start_paused = true)]
async fn a_route_may_leave_it_to_the_next_request() {
    let store = Wire::new();
    let protection = Protection { recover_for: Duration::ZERO, ..resend() };
    let process = Process::start(&store, protection, &[Breaks, Says(409), Says(201)]);
    process.send("").await.check(502, "execution-unanswered");
    assert_eq!(state(&store).await, StateTag::InDoubt);
    process.send("").await.check(409, "outcome-in-doubt");
    assert_eq!(process.send("").await.status, 201);
    assert_eq!(process.fences(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_goes_on_as_well() {
    let store = Wire::new();
    let script = [Panics, CannotBeReached, Says(409), Breaks, Says(201)];
    let process = Process::start(&store, resend(), &script);
    process.send("").await.check(500, "execution-panicked");
    assert_eq!(state(&store).await, StateTag::InDoubt);
    assert_eq!(process.send("").await.status, 201);
    assert_eq!(process.fences(), ["1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn under_hold_and_at_most_once_nothing_is_sent_twice() {
    for (results, recovery) in
        [(ResultPolicy::Terminal, Recovery::Hold), (ResultPolicy::AtMostOnce, Recovery::Resend)]
    {
        let protection = Protection { policy: policy(recovery), results, ..Protection::default() };
        let process = Process::start(&Wire::new(), protection, &[Breaks]);
        process.send("").await.check(502, "execution-unanswered");
        sleep(Duration::from_secs(120)).await;
        assert_eq!(process.fences(), ["1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_without_a_lease_sends_nothing() {
    let store = Wire::new();
    let protection = Protection { recover_for: Duration::from_secs(300), ..resend() };
    let process = Process::start(&store, protection, &[Breaks; 100]);
    process.send("").await.check(502, "execution-unanswered");
    store.away(true);
    sleep(Duration::from_secs(60)).await;
    let sent = process.fences().len();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(process.fences().len(), sent);
    store.away(false);
    process.asked(sent + 1).await;
}

#[test]
fn what_a_process_was_finding_out_when_it_died_is_finished_by_the_next_one() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let first = runtime();
    let store = first.block_on(async {
        let store = Wire::new();
        let process = Process::start(&store, resend(), &[Breaks; 100]);
        let asking = process.clone();
        tokio::spawn(async move { asking.send("").await });
        process.asked(4).await;
        assert_eq!(state(&store).await, StateTag::Running);
        store
    });
    drop(first);
    runtime().block_on(async {
        let process = Process::start(&store, resend(), &[Breaks, Says(409), Says(201)]);
        process.asked(3).await;
        let answer = process.send("wait=9").await;
        assert!(answer.is_replay());
        assert_eq!((answer.status, &answer.body[..]), (201, &b"answer 3"[..]));
        let without_credential = ["5", "6", "7"].map(|fence| (fence.to_owned(), false));
        assert_eq!(process.got(), without_credential);
    });
}
