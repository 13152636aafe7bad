//! The one request everybody makes: a numbered key, a small JSON body, an answer of 512 bytes.

use std::{
    fmt::Write,
    hash::{DefaultHasher, Hasher},
};

/// Who asks, in every request.
pub(super) const TENANT: &str = "acme";
/// What is asked for, in every request.
pub(super) const SCOPE: &str = "POST /payments";
/// How large each stored answer is.
pub(super) const ANSWER_BYTES: usize = 512;

/// The key of a request: a UUID as clients send them, always the same for the same number.
pub(super) fn key(number: u64) -> String {
    let mut random = fastrand::Rng::with_seed(number);
    let (high, low) = (random.u64(..), random.u64(..));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// The body a client sends with this number.
pub(super) fn body(number: u64) -> String {
    let mut body = String::with_capacity(256);
    // Writing to a string cannot fail.
    let _ = write!(
        body,
        r#"{{"amount":{},"currency":"EUR","reference":"{number:020}","card":"tok_4242424242424242","#,
        number % 100_000
    );
    body.push_str(r#""description":"one subscription, monthly, renewed","customer":"cus_8131","#);
    body.push_str(r#""capture":true,"metadata":{"shop":"berlin-3","cart":"a81b-77"}}"#);
    body
}

/// What a hand-written service stores to tell requests apart.
pub(super) fn hash(number: u64) -> i64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(body(number).as_bytes());
    hasher.finish().cast_signed()
}

/// The answer that is stored, unless a way is told another size.
pub(super) fn answer() -> Vec<u8> {
    answer_of(ANSWER_BYTES)
}

/// An answer of this size: bytes that do not compress.
pub(super) fn answer_of(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(512);
    let mut answer = vec![0; bytes];
    random.fill(&mut answer);
    answer
}
