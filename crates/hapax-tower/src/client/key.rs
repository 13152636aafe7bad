//! The key of an operation: given, or made here.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, UNIX_EPOCH},
};

use hapax_engine::wall_clock;
use http::{HeaderMap, HeaderValue};
use uuid::{Timestamp, Uuid, fmt::Hyphenated};

use super::error::InvalidRequest;
use crate::{KeyForm, header_names::IDEMPOTENCY_KEY, parse_key};

/// Makes keys: UUIDs of version 7, each later than the one before. What is random in them comes from
/// the operating system.
///
/// ```
/// use hapax_tower::client::KeySource;
///
/// let keys = KeySource::new();
/// assert!(keys.draw() < keys.draw(), "later keys are greater");
/// ```
#[derive(Debug, Default)]
pub struct KeySource {
    /// The milliseconds and the count of the last key: the first 60 bits that are not fixed.
    last: AtomicU64,
}

const COUNT_BITS: u8 = 12;

impl KeySource {
    /// A source of its own; its keys are not ordered with those of another one.
    pub fn new() -> Self {
        Self::default()
    }

    /// A key nobody has used before.
    pub fn draw(&self) -> String {
        self.draw_at(since_epoch()).to_string()
    }

    /// A new key as it is sent: quoted.
    pub(super) fn draw_quoted(&self) -> Option<OfRequest> {
        let mut quoted = [b'"'; Hyphenated::LENGTH + 2];
        self.draw_at(since_epoch()).encode_lower(&mut quoted[1..=Hyphenated::LENGTH]);
        HeaderValue::from_bytes(&quoted).ok().map(OfRequest)
    }

    /// The key of this time, or the next one if the clock did not move on.
    fn draw_at(&self, since_epoch: Duration) -> Hyphenated {
        let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        let first = millis << COUNT_BITS;
        let after = |last: u64| first.max(last + 1);
        let last = self.last.fetch_update(Relaxed, Relaxed, |last| Some(after(last)));
        let time = last.map_or(first, after);
        let (at, count) = (Duration::from_millis(time >> COUNT_BITS), time & 0x0fff);
        let (seconds, nanos) = (at.as_secs(), at.subsec_nanos());
        let time = Timestamp::from_unix_time(seconds, nanos, u128::from(count), COUNT_BITS);
        Uuid::new_v7(time).hyphenated()
    }
}

fn since_epoch() -> Duration {
    wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The key of a request, as it is sent.
#[derive(Debug, Clone)]
pub(super) struct OfRequest(pub(super) HeaderValue);

impl OfRequest {
    /// The key the caller gave, if there is one.
    pub(super) fn given(headers: &HeaderMap) -> Result<Option<Self>, InvalidRequest> {
        let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() || is_empty(value) {
            return Err(InvalidRequest::Key);
        }
        Ok(Some(Self(value.clone())))
    }

    /// The key without its quotes. What cannot be read is told as it stands there: whether it is a
    /// key is for the server to say.
    pub(super) fn text(&self) -> String {
        let raw = self.0.as_bytes();
        let unquoted = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        match unquoted {
            // What nothing is escaped in needs no parser.
            Some(key) if !key.contains(&b'\\') => String::from_utf8_lossy(key).into_owned(),
            _ => parse_key(raw, KeyForm::QuotedOrBare).map_or_else(
                |_| String::from_utf8_lossy(raw).into_owned(),
                |key| key.as_str().to_owned(),
            ),
        }
    }

    /// Whether an answer repeats the key, in whichever form.
    pub(super) fn is_repeated_in(&self, headers: &HeaderMap) -> bool {
        let repeated = headers.get(IDEMPOTENCY_KEY);
        repeated.is_some_and(|value| *value == self.0 || value.as_bytes() == self.text().as_bytes())
    }
}

fn is_empty(value: &HeaderValue) -> bool {
    value.as_bytes().iter().all(|byte| matches!(byte, b'"' | b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(0x0198_7654_3210);

    #[test]
    fn a_key_is_a_uuid_of_version_7_that_begins_with_its_time() {
        let key = KeySource::new().draw_at(MOMENT).to_string();
        assert!(key.starts_with("01987654-3210-7000-"), "{key}");
        let places: Vec<_> = key.match_indices('-').map(|(place, _)| place).collect();
        assert_eq!((key.len(), places), (36, vec![8, 13, 18, 23]));
        assert!(matches!(key.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{key}");
    }

    #[test]
    fn keys_of_one_source_are_ordered_even_if_the_clock_stands_or_goes_back() {
        let source = KeySource::new();
        let moments = [MOMENT; 5_000].into_iter().chain([MOMENT / 2, Duration::ZERO]);
        let keys: Vec<_> = moments.map(|moment| source.draw_at(moment)).collect();
        assert!(keys.is_sorted_by(|earlier, later| earlier < later));
    }

    #[test]
    fn keys_of_two_sources_differ_at_the_same_moment() {
        let (one, other) = (KeySource::new(), KeySource::new());
        assert_ne!(one.draw_at(MOMENT), other.draw_at(MOMENT));
    }

    #[test]
    fn a_key_is_told_without_its_quotes() {
        for (sent, told) in
            [("\"a-1\"", "a-1"), ("a-1", "a-1"), ("a;1", "a;1"), (r#""a\"1""#, "a\"1")]
        {
            assert_eq!(OfRequest(HeaderValue::from_static(sent)).text(), told);
        }
    }
}
