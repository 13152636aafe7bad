//! What it costs that records past retention are removed while many ask.

use std::time::Duration;

use super::{
    CALLERS, Course,
    mixed::Mix,
    place::{DATABASE, Place},
    stock::{Age, Stock},
};
use crate::bench::{
    error::BenchError,
    figures::{Claim, Spread},
    load::float,
    report::Section,
    sample::{COLUMNS, Ground, Sample},
    turns::{Named, Turns},
};

/// How soon a purge begins; it goes on as long as there is enough to remove. Where there is nothing
/// the engine looks as seldom as ever.
const PURGE_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Quiet,
    Purging,
}

impl Named for Way {
    fn label(self) -> &'static str {
        match self {
            Self::Quiet => "nothing past retention",
            Self::Purging => "purging meanwhile",
        }
    }
}

pub(super) fn run(course: &Course<'_>, ground: Ground<'_>) -> Result<Section, BenchError> {
    let turns = Turns::take(course.plan.rounds, &[Way::Quiet, Way::Purging], |way| {
        course.step(format!("{}, {}", ground.name(), way.label()), || take(course, ground, way))
    })?;
    let ratio = |of| turns.ratio(Way::Purging, Way::Quiet, of);
    let purged = turns.of(Way::Purging).iter().map(|sample| float(sample.purged));
    let claims = [
        Claim::at_least(
            "requests/s while purging, against nothing to purge",
            ratio(|sample| Some(sample.per_second)),
            "x",
            0.9,
        ),
        Claim::at_most(
            "p99 latency while purging, against nothing to purge",
            ratio(|sample| Some(sample.p99_ms)),
            "x",
            3.0,
        ),
        Claim::at_least(
            "records purged in each measurement, its warm-up included",
            Spread::of(purged),
            "",
            1.0,
        ),
    ];
    let keys = course.plan.expired;
    let title = format!("{}, {keys} keys past retention, {CALLERS} callers", ground.name());
    Ok(turns.section(title, COLUMNS, claims))
}

fn take(course: &Course<'_>, ground: Ground<'_>, way: Way) -> Result<Sample, BenchError> {
    let (age, purge_every) = match way {
        Way::Quiet => (Age::Young, None),
        Way::Purging => (Age::Expired, Some(PURGE_EVERY)),
    };
    let stock = Stock { keys: course.plan.expired, age };
    let place = Place::stocked(ground, DATABASE, stock)?;
    let mix = Mix { retries_percent: 0, finished: 0..0, first: 0 };
    let measured = place.measure(course.measure(CALLERS), mix, purge_every);
    place.remove()?;
    Ok(checked(way, measured?.sample))
}

/// Worthless unless something was purged where there was something, and nothing where there was not.
fn checked(way: Way, sample: Sample) -> Sample {
    let wrong = match (way, sample.purged) {
        (Way::Quiet, 0) | (Way::Purging, 1..) => None,
        (Way::Quiet, purged) => Some(format!("{purged} records were purged before their time")),
        (Way::Purging, 0) => Some("nothing was purged".to_owned()),
    };
    Sample { invalid: sample.invalid.or(wrong), ..sample }
}
