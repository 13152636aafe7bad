//! An event's limits.

use hapax_core::{
    Event, InvalidEvent,
    limits::{
        EVENT_HEADER_BYTES_MAX, EVENT_HEADERS_MAX, EVENT_NAME_BYTES_MAX, EVENT_PAYLOAD_BYTES_MAX,
    },
};

#[test]
fn names_are_bounded_and_hold_no_zero_byte() {
    let longest = "x".repeat(EVENT_NAME_BYTES_MAX);
    assert!(Event::new(&*longest, &*longest, "").is_ok());
    let long = format!("{longest}x");
    let len = EVENT_NAME_BYTES_MAX + 1;
    assert_eq!(Event::new(&*long, "k", ""), Err(InvalidEvent::TooLong { field: "topic", len }));
    assert_eq!(Event::new("t", "", ""), Err(InvalidEvent::Empty { field: "key" }));
    assert_eq!(Event::new("t", "a\0", ""), Err(InvalidEvent::HasNul { field: "key" }));
    let event = || Event::new("t", "k", "").unwrap();
    assert_eq!(event().content_type(""), Err(InvalidEvent::Empty { field: "content type" }));
    assert_eq!(event().header("", "v"), Err(InvalidEvent::Empty { field: "header name" }));
}

#[test]
fn a_payload_is_bounded() {
    assert!(Event::new("t", "k", vec![0; EVENT_PAYLOAD_BYTES_MAX]).is_ok());
    let len = EVENT_PAYLOAD_BYTES_MAX + 1;
    let refused = Event::new("t", "k", vec![0; len]);
    assert_eq!(refused, Err(InvalidEvent::PayloadTooLarge { len }));
}

#[test]
fn headers_are_bounded_in_number_and_together_in_bytes() {
    let mut event = Event::new("t", "k", "").unwrap();
    for at in 0..EVENT_HEADERS_MAX {
        event = event.header(at.to_string(), "v").unwrap();
    }
    assert_eq!(event.header("one", "more"), Err(InvalidEvent::TooManyHeaders));
    let event = || Event::new("t", "k", "").unwrap().header("a", "12345").unwrap();
    let rest = EVENT_HEADER_BYTES_MAX - "a12345b".len();
    assert!(event().header("b", "x".repeat(rest)).is_ok());
    let len = EVENT_HEADER_BYTES_MAX + 1;
    let refused = event().header("b", "x".repeat(rest + 1));
    assert_eq!(refused, Err(InvalidEvent::HeadersTooLarge { len }));
}
