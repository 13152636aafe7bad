//! The server's clock, by which leases and retention run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax::wall_clock;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};
use crate::units::span;

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
const MARK: &str = "SELECT seen_at, trusted_until, hapax.clock() FROM hapax.clock_mark";
const HAS_MARK: &str = "SELECT to_regclass('hapax.clock_mark') IS NOT NULL";

/// How often the clock is read, and how long lies between: half a second in all.
const READINGS: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(150);

/// A difference to this machine's clock that people should know about, and one that is wrong.
const APART: Duration = Duration::from_secs(2);
const FAR_APART: Duration = Duration::from_secs(60);
/// How far a clock may move against ours in that time; slewing moves it by less than a millisecond.
const MOVES: Duration = Duration::from_millis(50);
/// A clock that somebody watches was seen at most this long ago.
const WATCHED: Duration = Duration::from_secs(15 * 60);

/// How far the server's clock is ahead of ours, in microseconds, and how far that may be wrong.
#[derive(Debug, Clone, Copy)]
struct Reading {
    ahead: i64,
    within: i64,
}

/// What the store keeps about its clock, in microseconds.
#[derive(Debug, Clone, Copy)]
struct WatchedClock {
    seen_at: i64,
    trusted_until: i64,
    now: i64,
}

struct ClockFacts {
    readings: Vec<Reading>,
    mark: Option<WatchedClock>,
}

const CHECKS: &[fn(&ClockFacts) -> Diagnosis] = &[difference, steadiness, trust];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("clock", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<ClockFacts, Error> {
    let mut readings = Vec::new();
    for _ in 0..READINGS {
        if !readings.is_empty() {
            sleep(BETWEEN).await;
        }
        readings.push(read(client).await?);
    }
    let mark = if client.query_one(HAS_MARK, &[]).await?.try_get(0)? {
        client.query_opt(MARK, &[]).await?
    } else {
        None
    };
    let mark = mark.map(|row| {
        let (seen_at, trusted_until) = (row.try_get(0)?, row.try_get(1)?);
        Ok::<_, Error>(WatchedClock { seen_at, trusted_until, now: row.try_get(2)? })
    });
    Ok(ClockFacts { readings, mark: mark.transpose()? })
}

async fn read(client: &Client) -> Result<Reading, Error> {
    let (before, asked) = (wall_clock(), Instant::now());
    let theirs: i64 = client.query_one(NOW, &[]).await?.try_get(0)?;
    let half = asked.elapsed() / 2;
    Ok(Reading { ahead: theirs - micros_of(before + half), within: micros(half) })
}

fn difference(facts: &ClockFacts) -> Diagnosis {
    const NAME: &str = "clock";
    let Some(best) = facts.readings.iter().min_by_key(|reading| reading.within) else {
        return Diagnosis::new(NAME, "not read");
    };
    let apart = Duration::from_micros(best.ahead.unsigned_abs());
    let (within, side) = (span(Duration::from_micros(best.within.unsigned_abs())), best.side());
    let words = format!("{} {side} of this machine's, give or take {within}", span(apart));
    let found = Diagnosis::new(NAME, words);
    let risk = "leases and retention run by the server's clock alone and stay right, but tokens, keys that carry a time and the times in logs do not fit together";
    let advice = "have both machines keep time by NTP: chronyc tracking, or timedatectl";
    match apart {
        apart if apart >= FAR_APART => found.warning(risk, advice),
        apart if apart >= APART => found.note(risk, advice),
        _ => found,
    }
}

fn steadiness(facts: &ClockFacts) -> Diagnosis {
    let least = facts.readings.iter().map(|reading| reading.ahead + reading.within).min();
    let most = facts.readings.iter().map(|reading| reading.ahead - reading.within).max();
    // What is left is beyond what the time of the questions explains.
    let moved = most.zip(least).map_or(0, |(most, least)| (most - least).max(0));
    let moved = Duration::from_micros(moved.unsigned_abs());
    let found =
        Diagnosis::new("clock steps", format!("moved by {} within half a second", span(moved)));
    if moved < MOVES {
        return found;
    }
    found.warning(
        "a clock that is set back and forth ends leases too early or too late; nothing expires by it until it has stayed",
        "have it slewed, not stepped: makestep 1 3 in chrony.conf steps at the start alone",
    )
}

fn trust(facts: &ClockFacts) -> Diagnosis {
    let found = |what: String| Diagnosis::new("clock trust", what);
    let Some(WatchedClock { seen_at, trusted_until, now }) = facts.mark else {
        return found("nobody has watched this clock yet".to_owned());
    };
    let since = Duration::from_micros(u64::try_from(now - seen_at).unwrap_or(0));
    if now < seen_at.saturating_sub(micros(APART)) {
        let back = Duration::from_micros(seen_at.abs_diff(now));
        return found(format!("it is {} earlier than when it was last seen", span(back))).warning(
            "the clock was set back: keys are kept for that much longer, and leases end later",
            "correct the server's time; nothing is lost meanwhile",
        );
    }
    if since > WATCHED {
        return found(format!("last watched {} ago", span(since))).note(
            "nothing expires while nobody watches the clock, so that the store grows",
            "run a gateway, or hapax keys purge every five minutes",
        );
    }
    if trusted_until < seen_at.saturating_sub(micros(WATCHED)) {
        let held = Duration::from_micros(seen_at.abs_diff(trusted_until));
        return found(format!("it jumped: trusted up to {} ago", span(held))).note(
            "nothing expires beyond that until the clock has gone steadily for ten minutes",
            "see whether the server's time is right; then wait",
        );
    }
    found(format!("watched {} ago, and trusted", span(since)))
}

impl Reading {
    fn side(self) -> &'static str {
        if self.ahead >= 0 { "ahead" } else { "behind" }
    }
}

fn micros_of(moment: SystemTime) -> i64 {
    micros(moment.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    const SECOND: i64 = 1_000_000;

    fn facts(ahead: &[i64]) -> ClockFacts {
        let reading = |ahead: &i64| Reading { ahead: *ahead, within: 300 };
        ClockFacts { readings: ahead.iter().map(reading).collect(), mark: None }
    }

    #[test]
    fn clocks_that_are_apart_are_told_with_how_far() {
        for (ahead, severity) in [
            (-1000, None),
            (3 * SECOND, Some(Severity::Note)),
            (-7200 * SECOND, Some(Severity::Warning)),
        ] {
            let told = difference(&facts(&[ahead]));
            assert_eq!(told.severity(), severity, "{}", told.found);
        }
        assert!(difference(&facts(&[-7200 * SECOND])).found.starts_with("2 h behind"));
    }

    #[test]
    fn a_clock_that_moves_while_it_is_looked_at_is_told() {
        assert_eq!(steadiness(&facts(&[100, 500, 300])).severity(), None);
        assert_eq!(steadiness(&facts(&[0, 0, SECOND])).severity(), Some(Severity::Warning));
    }

    #[test]
    fn what_the_store_knows_of_its_clock_is_told() {
        let now = 1_000_000 * SECOND;
        for (seen_ago, trusted_ago, words) in [
            (5, 5, "and trusted"),
            (3600, 3600, "last watched 60 min ago"),
            (-3600, 0, "earlier than when it was last seen"),
            (5, 86_400, "it jumped"),
        ] {
            let (seen_at, trusted_until) = (now - seen_ago * SECOND, now - trusted_ago * SECOND);
            let mark = Some(WatchedClock { seen_at, trusted_until, now });
            let told = trust(&ClockFacts { mark, ..facts(&[0]) });
            assert!(told.found.contains(words), "{}", told.found);
        }
    }
}
