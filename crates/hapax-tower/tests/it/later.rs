//! Requests that are accepted now and run later, also by the next process.

use std::{sync::Arc, time::Duration};

use axum::{Router, response::IntoResponse};
use hapax_core::{Recovery, StateTag};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    IdempotencyLayer, InFlight, KeptCredentials, Later, Protection, RateLimit, Routes, Site,
    Tenancy, Treatment,
};
use http::Request;
use tokio::time::Instant;

use crate::{
    script::{self, Act},
    world::{Answer, Service, Wire, keyed, policy, post, router, send, service},
};

/// One process: an engine, the layer, and whoever runs what was accepted.
struct Process {
    app: Router,
    later: Later,
    service: Arc<Service>,
}

impl Process {
    /// `works`: whether it runs what it accepts, or dies before it can.
    fn start(store: &Wire, protection: Protection, works: bool) -> Self {
        let routes = Routes::new(Treatment::Protect(protection)).unwrap();
        let later = Later::new(routes, Site::default());
        let finisher = works.then(|| later.finisher());
        let options = Options { finisher, ..Options::default() };
        let engine = Engine::start(store.clone(), options);
        let layer = IdempotencyLayer::with_later(engine, Tenancy::credential(), &later);
        let service = service(|| unreachable!());
        let app = router(&service).layer(layer);
        Self { app, later, service }
    }

    fn serves(self) -> Self {
        self.later.serve(router(&self.service));
        self
    }

    async fn look(&self, location: &str) -> Answer {
        let request = Request::get(location).header("authorization", "Bearer alice");
        send(&self.app, request, "").await
    }

    fn runs(&self) -> usize {
        self.service.runs.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn accept() -> Protection {
    let credentials = KeptCredentials::Keep;
    Protection { in_flight: InFlight::Accept, credentials, ..Protection::default() }
}

fn respond_async() -> Protection {
    let credentials = KeptCredentials::Keep;
    Protection { respond_async: true, credentials, ..Protection::default() }
}

async fn finished(process: &Process, location: &str) -> Answer {
    for _ in 0..1000 {
        let seen = process.look(location).await;
        if seen.is_replay() {
            return seen;
        }
        assert_eq!(seen.status, 200);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it was never finished");
}

#[tokio::test(start_paused = true)]
async fn an_accepted_request_is_answered_with_an_address_and_run_in_the_background() {
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let accepted = send(&process.app, keyed("/slow"), "100").await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.header("preference-applied"), None);
    assert!(accepted.header("idempotency-expires").is_some());
    let location = accepted.header("location").unwrap().to_owned();
    while process.runs() == 0 {
        tokio::task::yield_now().await;
    }
    let seen = process.look(&location).await;
    assert_eq!((seen.status, seen.json()["state"].as_str()), (200, Some("running")));
    assert_eq!(seen.header("retry-after"), Some("1"));
    let again = send(&process.app, keyed("/slow"), "100").await;
    assert_eq!((again.status, again.header("location")), (202, Some(location.as_str())));
    process.service.go.add_permits(1);
    let seen = finished(&process, &location).await;
    assert_eq!((seen.status, seen.body.as_ref()), (201, &b"run 1 of 3 bytes"[..]));
    assert_eq!(seen.header("cache-control"), Some("no-store"));
    assert!(send(&process.app, keyed("/slow"), "100").await.is_replay());
    assert_eq!(process.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_at_an_accepted_request_is_told_when_such_work_is_usually_done() {
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let request = |key: &str| post("/slow").header("idempotency-key", key.to_owned());
    let mut told = Vec::new();
    for run in 1..4 {
        let accepted = send(&process.app, request(&format!("k-{run}")), "100").await;
        let location = accepted.header("location").unwrap().to_owned();
        while process.runs() < run {
            tokio::task::yield_now().await;
        }
        let again = send(&process.app, request(&format!("k-{run}")), "100").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let seen = process.look(&location).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        process.service.go.add_permits(1);
        finished(&process, &location).await;
        let heard = [accepted, again, seen]
            .map(|answer| answer.header("retry-after").unwrap().parse::<u32>().unwrap());
        told.push(heard);
    }
    assert_eq!(told[0], [1, 1, 1]);
    // Six seconds of work, known within a quarter.
    assert!(told[2].iter().zip([6..=8, 6..=8, 4..=6]).all(|(told, usual)| usual.contains(told)));
}

#[tokio::test(start_paused = true)]
async fn what_a_dying_process_accepted_is_run_by_the_next_one() {
    let store = Wire::new();
    let first = Process::start(&store, accept(), false);
    let accepted = send(&first.app, keyed("/pay"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    let seen = first.look(&location).await;
    assert_eq!(seen.json()["state"], "pending");
    drop(first);
    let second = Process::start(&store, accept(), true).serves();
    let seen = finished(&second, &location).await;
    assert_eq!((seen.status, seen.body.as_ref()), (201, &b"run 1 of 3 bytes"[..]));
    let last = second.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(
        (&last["idempotency-key"], &last["hapax-fence"]),
        (&"\"k-1\"".parse().unwrap(), &"2".parse().unwrap())
    );
    assert_eq!(last["authorization"], "Bearer alice");
}

#[tokio::test(start_paused = true)]
async fn requests_wait_until_there_is_a_service_to_run_them() {
    let process = Process::start(&Wire::new(), accept(), true);
    let accepted = send(&process.app, keyed("/pay"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(process.runs(), 0);
    let process = process.serves();
    assert_eq!(finished(&process, &location).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_prefer_to_be_answered_before_it_is_run() {
    let process = Process::start(&Wire::new(), respond_async(), true).serves();
    let request = keyed("/pay").header("prefer", "respond-async");
    let accepted = send(&process.app, request, "100").await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.header("preference-applied"), Some("respond-async"));
    let location = accepted.header("location").unwrap().to_owned();
    assert_eq!(finished(&process, &location).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn who_prefers_it_is_answered_as_usual_where_the_route_does_not_offer_it() {
    let process = Process::start(&Wire::new(), Protection::default(), true).serves();
    let request = keyed("/pay").header("prefer", "respond-async");
    let answer = send(&process.app, request, "100").await;
    assert_eq!((answer.status, answer.header("preference-applied")), (201, None));
}

#[tokio::test(start_paused = true)]
async fn what_would_be_run_without_its_credentials_is_refused_and_nothing_is_kept() {
    for protection in [
        Protection { in_flight: InFlight::Accept, ..Protection::default() },
        Protection { respond_async: true, ..Protection::default() },
    ] {
        let store = Wire::new();
        let process = Process::start(&store, protection, true).serves();
        let request = || keyed("/pay").header("prefer", "respond-async");
        send(&process.app, request(), "100").await.check(400, "credentials-not-kept");
        let request = request().header("cookie", "session=1");
        send(&process.app, request, "100").await.check(400, "credentials-not-kept");
        assert_eq!((process.runs(), store.all().await.len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_wait_has_the_same_share_as_any_other() {
    let one = std::num::NonZeroU32::new(1).unwrap();
    let protection = Protection { limit: Some(RateLimit::per_tenant(one, one)), ..accept() };
    let store = Wire::new();
    let process = Process::start(&store, protection, true).serves();
    for number in 0..20 {
        let request = || post("/pay").header("idempotency-key", format!("k-{number}"));
        let expected = if number == 0 { 202 } else { 429 };
        assert_eq!(send(&process.app, request(), "100").await.status, expected);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(process.runs(), 1, "what was refused is never run");
}

/// What becomes of an accepted request whose service acts like this.
async fn accepted(script: &[Act], protection: Protection) -> (script::Process, Wire) {
    let store = Wire::new();
    let process = script::Process::start(&store, protection, script);
    assert_eq!(process.send("respond-async").await.status, 202);
    (process, store)
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_tried_again_while_the_service_is_away_or_says_not_now() {
    let script = [
        Act::CannotBeReached,
        Act::Says(429),
        Act::SaysWait(503, 7),
        Act::CannotBeReached,
        Act::Says(425),
        Act::Says(503),
        Act::Says(201),
    ];
    for recovery in [Recovery::Hold, Recovery::Resend] {
        let policy = policy(recovery);
        let script = if recovery == Recovery::Hold { &script[..] } else { &script[..3] };
        let (process, store) = accepted(script, Protection { policy, ..respond_async() }).await;
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if store.all().await[0].stamp.tag == StateTag::Completed {
                break;
            }
        }
        assert!(process.send("").await.is_replay(), "{recovery:?}");
        let fences: Vec<u64> = process.fences().iter().map(|f| f.parse().unwrap()).collect();
        assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_refused_for_good_is_failed_with_that_answer() {
    for status in [400, 401, 403, 413, 422] {
        let (process, store) = accepted(&[Act::Says(status)], respond_async()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(store.all().await[0].stamp.tag, StateTag::Failed, "{status}");
        assert_eq!((process.send("").await.status, process.fences().len()), (status, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_may_have_happened_is_in_doubt_and_never_forgotten() {
    for act in [Act::Says(500), Act::Says(502), Act::Breaks, Act::Panics] {
        let (process, store) = accepted(&[act], respond_async()).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(store.all().await[0].stamp.tag, StateTag::InDoubt, "{act:?}");
        process.send("").await.check(409, "outcome-in-doubt");
        assert_eq!(process.fences().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_never_done_fails_when_its_time_is_over() {
    let (process, store) = accepted(&[Act::CannotBeReached; 10_000], respond_async()).await;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
    assert_eq!(store.all().await[0].stamp.tag, StateTag::Failed);
    assert_eq!(process.send("").await.status, 504);
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_sent_again_until_it_is_known_where_the_service_deduplicates() {
    let policy = policy(Recovery::Resend);
    let protection = Protection { policy, ..respond_async() };
    let (process, store) = accepted(&[Act::Breaks; 60], protection).await;
    for _ in 0..2000 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if store.all().await[0].stamp.tag == StateTag::Completed {
            break;
        }
    }
    assert!(process.send("").await.is_replay(), "longer than it is looked after by one owner");
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_not_there_for_anybody_else() {
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let accepted = send(&process.app, keyed("/pay"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    finished(&process, &location).await;
    let bob = Request::get(&location).header("authorization", "Bearer bob");
    let bob = send(&process.app, bob, "").await;
    bob.check(404, "operation-unknown");
    let unknown = location.replace(&location[location.len() - 4..], "0000");
    assert_eq!(process.look(&unknown).await.body, bob.body);
    send(&process.app, Request::get(&location), "").await.check(401, "credential-missing");
    process.look("/.well-known/idempotency/operations/zz").await.check(404, "operation-unknown");
}

#[tokio::test(start_paused = true)]
async fn an_operation_past_its_retention_is_gone() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let process = Process::start(&Wire::new(), accept(), true).serves();
    // Between two purges, which come every five seconds.
    tokio::time::sleep(seconds(1)).await;
    let accepted = send(&process.app, keyed("/pay"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    finished(&process, &location).await;
    tokio::time::sleep_until(began + seconds(24 * 3600 + 4)).await;
    process.look(&location).await.check(410, "key-gone");
}

#[tokio::test(start_paused = true)]
async fn an_accepted_request_that_panics_is_in_doubt_at_its_address() {
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let accepted = send(&process.app, keyed("/panic"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    tokio::time::sleep(Duration::from_secs(1)).await;
    process.look(&location).await.check(409, "outcome-in-doubt");
}

#[tokio::test(start_paused = true)]
async fn under_resend_the_next_process_finishes_what_a_vanished_one_began() {
    let store = Wire::new();
    let resend = policy(Recovery::Resend);
    let protection = Protection { policy: resend, ..Protection::default() };
    let first = Process::start(&store, protection.clone(), true);
    let app = first.app.clone();
    let request = tokio::spawn(async move { send(&app, keyed("/slow"), "100").await });
    while first.runs() == 0 {
        tokio::task::yield_now().await;
    }
    store.away(true);
    first.service.go.add_permits(1);
    request.await.unwrap().check(503, "outcome-not-recorded");
    drop(first);
    store.away(false);
    let second = Process::start(&store, protection, true).serves();
    second.service.go.add_permits(1);
    while second.runs() == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let answer = send(&second.app, keyed("/slow").header("prefer", "wait=9"), "100").await;
    assert!(answer.is_replay());
}

#[tokio::test(start_paused = true)]
async fn routes_that_were_replaced_hold_for_the_next_layer_and_for_what_runs_later() {
    let store = Wire::new();
    let process = Process::start(&store, accept(), true);
    let accepted = send(&process.app, keyed("/made"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    let small = Protection { response_bytes_max: 3, ..Protection::default() };
    process.later.replace(Routes::new(Treatment::Protect(small)).unwrap());
    process.later.serve(router(&service(|| "four".into_response())));
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    process.look(&location).await.check(409, "response-not-retained");
    let engine = Engine::start(store, Options::default());
    let layer = IdempotencyLayer::with_later(engine, Tenancy::credential(), &process.later);
    let app = router(&process.service).layer(layer);
    let request = post("/pay").header("idempotency-key", "k-2");
    assert_eq!(send(&app, request, "100").await.status, 201);
}
