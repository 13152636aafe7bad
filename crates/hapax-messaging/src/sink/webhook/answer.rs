//! What an answer means for the event, or for all events.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};

use crate::sink::{Outage, Verdict};

/// The longest a receiver may ask to be left alone.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// What a receiver's answer means.
pub(super) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    excerpt: &str,
    now: SystemTime,
) -> Result<Verdict, Outage> {
    let answer = |about| RefusedAnswer { status, about, excerpt: excerpt.to_owned() };
    match status.as_u16() {
        200..=299 => Ok(Verdict::Taken),
        410 => Err(Outage::until_resumed(answer("it wants no more events"))),
        401 | 407 => Err(Outage::until_resumed(answer("it lets nobody in with these credentials"))),
        301 | 308 => Err(Outage::until_resumed(answer("it has moved; name its new address"))),
        300..=399 => Err(Outage::new(answer("redirects are not followed"))),
        429 | 503 => {
            let outage = Outage::new(answer("it takes nothing now"));
            Err(match pause(headers, now) {
                Some(pause) => outage.for_at_least(pause),
                None => outage,
            })
        }
        // Too slow, in flight already, wrong connection, locked, too early, or kept out by somebody
        // in between who may think otherwise the next time.
        403 | 408 | 409 | 421 | 423 | 425 => Ok(Verdict::Missed(answer("not now").to_string())),
        400..=499 => Ok(Verdict::Refused(answer("it will not take this event").to_string())),
        _ => Ok(Verdict::Missed(answer("it failed").to_string())),
    }
}

/// What the receiver asked for, in seconds or as a date.
fn pause(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = value.parse().ok().map(Duration::from_secs);
    let until = || httpdate::parse_http_date(value).ok();
    let pause = seconds.or_else(|| until()?.duration_since(now).ok())?;
    Some(pause.min(PAUSE_MAX))
}

/// An answer that is none of the good ones.
#[derive(Debug)]
struct RefusedAnswer {
    status: StatusCode,
    about: &'static str,
    excerpt: String,
}

impl fmt::Display for RefusedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the receiver answered {}", self.about, self.status)?;
        if self.excerpt.is_empty() {
            return Ok(());
        }
        write!(f, ", `{}`", self.excerpt)
    }
}

impl std::error::Error for RefusedAnswer {}
