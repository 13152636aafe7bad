//! Requests that are accepted now and run later, also by the next process.

use std::{sync::Arc, time::Duration};

use axum::{Router, response::IntoResponse};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    IdempotencyLayer, InFlight, Later, Protection, Routes, Site, Tenancy, Treatment,
};
use http::Request;

use crate::world::{Answer, Service, Wire, keyed, policy, post, router, send, service};

/// One process: an engine, the layer, and whoever runs what was accepted.
struct Process {
    app: Router,
    later: Later<Wire>,
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
    Protection { in_flight: InFlight::Accept, ..Protection::default() }
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
        (&"k-1".parse().unwrap(), &"2".parse().unwrap())
    );
    assert!(!last.contains_key("authorization"));
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
    let process = Process::start(&Wire::new(), Protection::default(), true).serves();
    let request = keyed("/pay").header("prefer", "respond-async");
    let accepted = send(&process.app, request, "100").await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.header("preference-applied"), Some("respond-async"));
    let location = accepted.header("location").unwrap().to_owned();
    assert_eq!(finished(&process, &location).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn an_accepted_request_that_fails_for_now_is_run_again_only_when_asked() {
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let accepted = send(&process.app, keyed("/500").header("prefer", "wait=9"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(process.look(&location).await.json()["state"], "released");
    assert_eq!(process.runs(), 1);
    assert_eq!(send(&process.app, keyed("/500"), "100").await.status, 202);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(process.runs(), 2);
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
    let process = Process::start(&Wire::new(), accept(), true).serves();
    let accepted = send(&process.app, keyed("/pay"), "100").await;
    let location = accepted.header("location").unwrap().to_owned();
    finished(&process, &location).await;
    tokio::time::advance(Duration::from_secs(25 * 3600)).await;
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
    let resend = policy(hapax_core::ResultPolicy::Terminal, hapax_core::Recovery::Resend);
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
