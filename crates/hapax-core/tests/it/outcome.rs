//! The limits of an outcome.

use bytes::Bytes;
use hapax_core::{
    Body, Header, InvalidOutcome, Outcome,
    limits::{OUTCOME_BODY_BYTES_MAX, OUTCOME_HEADER_BYTES_MAX, OUTCOME_HEADERS_MAX},
};

fn header(name: &str, len: usize) -> Header {
    Header { name: name.into(), value: Bytes::from(vec![b'v'; len]) }
}

#[test]
fn an_outcome_at_every_limit_is_kept() {
    let mut headers = vec![header("n", 0); OUTCOME_HEADERS_MAX - 1];
    let rest = OUTCOME_HEADER_BYTES_MAX - headers.len() - "last".len();
    headers.push(header("last", rest));
    let body = Body::Kept(Bytes::from(vec![0; OUTCOME_BODY_BYTES_MAX]));
    let outcome = Outcome::new(200, headers.clone(), body.clone()).unwrap();
    assert_eq!(outcome.status(), 200);
    assert_eq!(outcome.headers(), headers);
    assert_eq!(outcome.body(), &body);
}

#[test]
fn an_outcome_past_any_limit_is_refused() {
    let nothing = Body::NotKept { len: u64::MAX };
    let many = vec![header("n", 0); OUTCOME_HEADERS_MAX + 1];
    let refused = Outcome::new(200, many, nothing.clone()).unwrap_err();
    assert_eq!(refused, InvalidOutcome::TooManyHeaders { count: OUTCOME_HEADERS_MAX + 1 });
    let large = vec![header("n", OUTCOME_HEADER_BYTES_MAX)];
    let refused = Outcome::new(200, large, nothing).unwrap_err();
    assert_eq!(refused, InvalidOutcome::HeadersTooLarge { len: OUTCOME_HEADER_BYTES_MAX + 1 });
    let body = Body::Kept(Bytes::from(vec![0; OUTCOME_BODY_BYTES_MAX + 1]));
    let refused = Outcome::new(200, Vec::new(), body).unwrap_err();
    assert_eq!(refused, InvalidOutcome::BodyTooLarge { len: OUTCOME_BODY_BYTES_MAX + 1 });
}

#[test]
fn a_bare_outcome_is_a_status_and_nothing_else() {
    let bare = Outcome::bare(204);
    assert_eq!(Ok(bare), Outcome::new(204, Vec::new(), Body::Kept(Bytes::new())));
}

#[test]
fn the_weight_counts_headers_and_the_kept_body() {
    assert_eq!(Outcome::bare(200).weight(), 0);
    let headers = vec![header("four", 6), header("ab", 0)];
    let kept = Outcome::new(200, headers.clone(), Body::Kept(Bytes::from(vec![0; 100]))).unwrap();
    assert_eq!(kept.weight(), (4 + 6 + 56) + (2 + 56) + 100);
    let not_kept = Outcome::new(200, headers, Body::NotKept { len: 100 }).unwrap();
    assert_eq!(not_kept.weight(), (4 + 6 + 56) + (2 + 56));
}

#[test]
fn a_value_is_given_back_as_it_was_and_is_no_fronts_answer() {
    let bytes = Bytes::from_static(b"{\"receipt\":17}");
    assert_eq!(Outcome::value(bytes.clone()).unwrap().as_value(), Some(&bytes));
    assert_eq!(Outcome::value(Bytes::new()).unwrap().as_value(), Some(&Bytes::new()));
    let answer = Outcome::new(200, Vec::new(), Body::Kept(bytes)).unwrap();
    assert_eq!(answer.as_value(), None);
    let large = Bytes::from(vec![0; OUTCOME_BODY_BYTES_MAX + 1]);
    let refused = Outcome::value(large).unwrap_err();
    assert_eq!(refused, InvalidOutcome::BodyTooLarge { len: OUTCOME_BODY_BYTES_MAX + 1 });
}
