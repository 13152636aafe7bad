//! What the process tells others: spans and metrics to a collector, lines to an access log.

mod access_log;
mod collector;
mod faults;
mod metrics;
mod traces;

use crate::world::post;

/// The trace of a caller that records it.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A request with a key, from a caller that is part of a trace.
fn traced(path: &str, key: &str, flags: &str) -> String {
    let parent =
        format!("traceparent: 00-{TRACE}-{CALLER}-{flags}\r\ntracestate: shop=1,bank=2\r\n\r\n");
    post(path, key, "ten").replacen("\r\n\r\n", &format!("\r\n{parent}"), 1)
}
