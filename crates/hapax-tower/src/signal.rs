//! What callers tell those they call, hop by hop: how much time is left, and who retries.
//!
//! - `Hapax-Deadline: 4500`: the caller waits 4,500 more milliseconds. A span needs no common clock,
//!   and only shrinks on its way inward.
//! - `grpc-timeout: 4500m`: the same in the words of gRPC, for services that read those.
//! - `Hapax-Retry: never`: somebody further out repeats this request, so nobody further in does.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Carries the time a caller still waits, in whole milliseconds.
pub const DEADLINE: HeaderName = HeaderName::from_static("hapax-deadline");
/// Says that requests are repeated further out.
pub const RETRY: HeaderName = HeaderName::from_static("hapax-retry");
/// Carries the time a caller still waits, as gRPC spells it.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

const NEVER: HeaderValue = HeaderValue::from_static("never");
/// A number of more digits is no time anybody waits.
const DEADLINE_DIGITS_MAX: usize = 12;
const DEADLINE_MILLIS_MAX: u64 = 999_999_999_999;
const GRPC_DIGITS_MAX: usize = 8;
const GRPC_COUNT_MAX: u128 = 99_999_999;

/// The time left is not said in a way that can be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{header} is not a time: {reason}")]
pub struct MalformedTime {
    header: HeaderName,
    reason: &'static str,
}

/// How long the caller still waits, if it says so in `Hapax-Deadline`.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::signal;
///
/// let mut headers = http::HeaderMap::new();
/// signal::set_time_left(&mut headers, Duration::from_millis(4500));
/// assert_eq!(headers["hapax-deadline"], "4500");
/// assert_eq!(signal::time_left(&headers)?, Some(Duration::from_millis(4500)));
/// # Ok::<(), signal::MalformedTime>(())
/// ```
pub fn time_left(headers: &HeaderMap) -> Result<Option<Duration>, MalformedTime> {
    let Some(digits) = single(headers, &DEADLINE)? else { return Ok(None) };
    let malformed =
        MalformedTime { header: DEADLINE, reason: "write the milliseconds left, as in 4500" };
    number(digits, DEADLINE_DIGITS_MAX)
        .map(|millis| Some(Duration::from_millis(millis)))
        .ok_or(malformed)
}

/// How long the caller still waits, if it says so in `grpc-timeout`.
pub fn grpc_time_left(headers: &HeaderMap) -> Result<Option<Duration>, MalformedTime> {
    let Some(text) = single(headers, &GRPC_TIMEOUT)? else { return Ok(None) };
    let malformed = MalformedTime {
        header: GRPC_TIMEOUT,
        reason: "write up to eight digits and a unit of H, M, S, m, u or n, as in 4500m",
    };
    let spelled = text.split_last().and_then(|(unit, digits)| {
        let count = number(digits, GRPC_DIGITS_MAX)?;
        Some(match unit {
            b'H' => Duration::from_secs(count * 60 * 60),
            b'M' => Duration::from_secs(count * 60),
            b'S' => Duration::from_secs(count),
            b'm' => Duration::from_millis(count),
            b'u' => Duration::from_micros(count),
            b'n' => Duration::from_nanos(count),
            _ => return None,
        })
    });
    spelled.map(Some).ok_or(malformed)
}

/// Whether somebody further out repeats this request.
pub fn is_retried_further_out(headers: &HeaderMap) -> bool {
    headers.get_all(RETRY).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"never"))
}

/// Says how much time is left.
pub fn set_time_left(headers: &mut HeaderMap, left: Duration) {
    let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    headers.insert(DEADLINE, HeaderValue::from(millis.min(DEADLINE_MILLIS_MAX)));
}

/// Says how much time is left in the words of gRPC, in the finest unit that eight digits can hold.
pub fn set_grpc_time_left(headers: &mut HeaderMap, left: Duration) {
    let (nanos, seconds) = (left.as_nanos(), u128::from(left.as_secs()));
    let (count, unit) =
        [(nanos, 'n'), (nanos / 1_000, 'u'), (nanos / 1_000_000, 'm'), (seconds, 'S')]
            .into_iter()
            .find(|(count, _)| *count <= GRPC_COUNT_MAX)
            .unwrap_or((GRPC_COUNT_MAX, 'S'));
    if let Ok(spelled) = HeaderValue::try_from(format!("{count}{unit}")) {
        headers.insert(GRPC_TIMEOUT, spelled);
    }
}

/// Says that this request is repeated here, and nowhere further in.
pub fn set_retried_further_out(headers: &mut HeaderMap) {
    headers.insert(RETRY, NEVER);
}

fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a [u8]>, MalformedTime> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::as_bytes);
    if values.next().is_some() {
        return Err(MalformedTime { header: name.clone(), reason: "it is there more than once" });
    }
    Ok(first)
}

fn number(digits: &[u8], digits_max: usize) -> Option<u64> {
    if !(1..=digits_max).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    #[test]
    fn a_time_that_was_set_is_read_back() {
        for left in [0, 1, 4_500, 86_400_000, 31_536_000_000].map(Duration::from_millis) {
            let mut headers = HeaderMap::new();
            set_time_left(&mut headers, left);
            set_grpc_time_left(&mut headers, left);
            assert_eq!(time_left(&headers), Ok(Some(left)));
            let spelled = grpc_time_left(&headers).unwrap().unwrap();
            assert!(spelled <= left && left - spelled < Duration::from_secs(1), "{spelled:?}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_and_never_guessed() {
        for value in ["", "-1", "1.5", "4500ms", "+5", "soon", "9999999999999"] {
            assert!(time_left(&headers("hapax-deadline", value)).is_err(), "{value:?}");
        }
        for value in ["", "m", "12", "1x", "-1S", "123456789S", "5 S"] {
            assert!(grpc_time_left(&headers("grpc-timeout", value)).is_err(), "{value:?}");
        }
        let mut twice = headers("hapax-deadline", "1");
        twice.append(DEADLINE, HeaderValue::from_static("2"));
        assert!(time_left(&twice).is_err());
        assert_eq!(time_left(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn only_never_says_that_somebody_else_retries() {
        assert!(is_retried_further_out(&headers("hapax-retry", "Never")));
        assert!(!is_retried_further_out(&headers("hapax-retry", "always")));
        assert!(!is_retried_further_out(&HeaderMap::new()));
        let mut set = HeaderMap::new();
        set_retried_further_out(&mut set);
        assert!(is_retried_further_out(&set));
    }
}
