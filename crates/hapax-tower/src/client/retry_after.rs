//! How long an answer asks its client to wait.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};

/// What `Retry-After` says as a span from now; `None` if it is not there or cannot be understood.
///
/// A date is read against the `Date` of the answer itself, so that the two clocks need not agree.
pub(super) fn told(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than can be counted are more than anybody waits for.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let said =
        headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    Some(until.duration_since(said.unwrap_or_else(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::HeaderValue;

    use super::*;

    fn check(retry_after: &'static str, date: Option<&'static str>, expected: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        // 2026-03-01T00:00:00Z
        let now = || UNIX_EPOCH + Duration::from_secs(1_772_323_200);
        assert_eq!(told(&headers, now), expected.map(Duration::from_secs), "{retry_after:?}");
    }

    #[test]
    fn seconds_are_taken_as_they_are() {
        check("0", None, Some(0));
        check(" 7 ", None, Some(7));
        check("999999", None, Some(999_999));
        check("99999999999999999999999", None, Some(u64::MAX));
    }

    #[test]
    fn a_date_is_measured_from_the_date_of_the_answer() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        check("Wed, 21 Oct 2015 07:28:30 GMT", date, Some(30));
        check("Wed, 21 Oct 2015 07:27:30 GMT", date, Some(0));
    }

    #[test]
    fn a_date_alone_is_measured_from_our_own_clock() {
        check("Sun, 01 Mar 2026 00:01:00 GMT", None, Some(60));
        check("Sun, 01 Mar 2026 00:01:00 GMT", Some("yesterday"), Some(60));
    }

    #[test]
    fn what_cannot_be_understood_is_as_good_as_nothing() {
        for garbage in ["", "soon", "-5", "1.5", "5s", "0x10", "Wed, 99 Oct 2015 07:28:00 GMT"] {
            check(garbage, None, None);
        }
    }
}
