//! What an upstream answers, as bytes on a connection.
#![no_main]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what is not expected is what is looked for"
)]

use hapax_gateway::{
    client::{Transcript, read_answer},
    config::Upstream,
};
use http::{
    Method, StatusCode, Uri,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use libfuzzer_sys::fuzz_target;

/// So small that both bounds are met.
const HEAD_BYTES_MAX: usize = 512;
const HEADERS_MAX: usize = 8;
/// What nobody asked for.
const POISON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let method = [Method::POST, Method::GET, Method::HEAD][usize::from(first % 3)].clone();
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let upstream = Upstream {
            answer_head_bytes_max: HEAD_BYTES_MAX,
            answer_headers_max: HEADERS_MAX,
            ..Upstream::at(Uri::from_static("http://localhost"))
        };
        read_answer(&upstream, &method, pieces).ok()
    };
    let whole = read(&mut std::iter::once(bytes));
    for size in [1, 7, usize::from(*first) + 1] {
        check_same(whole.as_ref(), read(&mut bytes.chunks(size)).as_ref());
    }
    let Some(answer) = whole else { return };
    check(&method, &answer);
    if answer.keeps_open {
        let cut = bytes.split_last().unwrap().1;
        assert!(read(&mut std::iter::once(cut)).is_none(), "an answer without its end is none");
        let poisoned = read(&mut [bytes, POISON].into_iter()).unwrap();
        assert_eq!(poisoned.response.body(), answer.response.body());
        assert!(!poisoned.keeps_open, "the next request would be answered by nobody");
    }
});

/// How bytes come off a connection is chance.
fn check_same(whole: Option<&Transcript>, pieces: Option<&Transcript>) {
    match (whole, pieces) {
        (None, None) => {}
        (Some(whole), Some(pieces)) => {
            let told = |answer: &Transcript| format!("{answer:?}");
            assert_eq!(told(whole), told(pieces));
        }
        (whole, pieces) => panic!("{whole:?} whole, {pieces:?} in pieces"),
    }
}

/// What is passed on says one thing about its length, and that is true.
fn check(method: &Method, Transcript { response, keeps_open, .. }: &Transcript) {
    let (status, headers, body) = (response.status(), response.headers(), response.body());
    assert!(!status.is_informational());
    assert!(headers.len() <= HEADERS_MAX);
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next().map(|length| length.to_str().unwrap().parse::<usize>());
    assert_eq!(lengths.next(), None, "one line");
    let codings: Vec<_> = headers.get_all(TRANSFER_ENCODING).iter().collect();
    assert!(codings.is_empty() || length.is_none(), "one framing");
    let is_bodiless = *method == Method::HEAD
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    match length {
        _ if is_bodiless => assert!(body.is_empty()),
        Some(length) => assert_eq!(length, Ok(body.len())),
        None => assert!(!codings.is_empty() || !keeps_open, "its end is the connection's"),
    }
}
