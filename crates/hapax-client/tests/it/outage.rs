//! A server that is down is not asked much more often than it would be without retries.

use std::time::Duration;

use hapax_client::{Destinations, RetryOptions};
use hapax_core::retry::{BreakerOptions, Terms};
use tokio::{task::JoinSet, time::interval};

use crate::server::{Server, answer, builder};

const REQUESTS: usize = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_full_outage_the_server_sees_at_most_a_tenth_more() {
    let server = Server::start(async |_| answer(503, "down")).await;
    // The breaker would stop nearly everything; this is about the budget.
    let breaker = BreakerOptions { calls_min: 1_000_000, ..BreakerOptions::default() };
    let destinations = Destinations::new(Terms::default(), breaker).expect("destinations");
    let retry = RetryOptions { destinations, ..RetryOptions::default() };
    let client = builder().retry(retry).build().expect("a client");
    let mut every = interval(Duration::from_millis(5));
    let mut calls = JoinSet::new();
    for _ in 0..REQUESTS {
        every.tick().await;
        let call = client.post(server.at("/charges")).send();
        calls.spawn(call);
    }
    while let Some(ended) = calls.join_next().await {
        ended.expect("a task").expect_err("it is down");
    }
    let load = server.seen().len();
    assert!(load * 10 <= REQUESTS * 11, "{load} requests arrived for {REQUESTS}");
}
