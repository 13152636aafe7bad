//! Clients that take more than their share, and what others notice of them: room for requests and
//! answers, connections to the upstream, executions, descriptors.

mod answers;
mod bodies;
mod connections;
mod memory;
mod resets;
mod uploads;

use crate::http2::frames;

/// The head of a request by `alice`, up to what a test adds.
fn fields<'a>(path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let start = [
        (":method", "POST"),
        (":path", path),
        (":scheme", "http"),
        (":authority", "gateway"),
        ("authorization", "alice"),
    ];
    [&start[..], more].concat()
}

/// The number of the stream that is opened as this one, from zero.
fn stream(number: u32) -> u32 {
    2 * number + 1
}
