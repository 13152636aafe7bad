//! What it costs that records past retention are removed while many ask.

use std::time::Duration;

use super::{
    CALLERS, Course,
    mixed::Mix,
    place::{Measured, Place},
    stock::{Age, Stock},
};
use crate::bench::{
    error::BenchError,
    figures::{Claim, Spread, Target},
    load::float,
    report::Section,
    sample::{COLUMNS, Ground, Sample},
    turns::{Named, Turns},
};

/// How soon a purge begins, and how soon the next after the last found nothing more.
const PURGE_EVERY: Duration = Duration::from_millis(50);

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
    let mut purged = Vec::new();
    let turns = Turns::take(course.plan.rounds, &[Way::Quiet, Way::Purging], |way| {
        course.step(format!("{}, {}", ground.name(), way.label()), || {
            let measured = take(course, ground, way)?;
            if way == Way::Purging {
                purged.push(float(measured.purged));
            }
            Ok(checked(way, measured))
        })
    })?;
    let ratio = |of| turns.ratio(Way::Purging, Way::Quiet, of);
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
        Spread::of(purged).map(|measured| Claim {
            what: "records purged in each measurement".to_owned(),
            measured,
            unit: "",
            target: Some(Target::AtLeast(1.0)),
        }),
    ];
    let keys = course.plan.expired;
    let title = format!("{}, {keys} keys past retention, {CALLERS} callers", ground.name());
    Ok(turns.section(title, COLUMNS, claims))
}

fn take(course: &Course<'_>, ground: Ground<'_>, way: Way) -> Result<Measured, BenchError> {
    let age = match way {
        Way::Quiet => Age::Young,
        Way::Purging => Age::Expired,
    };
    let stock = Stock { keys: course.plan.expired, age };
    let place = Place::stocked(ground, "hapax_bench", stock)?;
    let mix = Mix { retries_percent: 0, finished: 0..0, first: 0 };
    let measured = place.measure(course.measure(CALLERS), mix, Some(PURGE_EVERY));
    place.remove()?;
    measured
}

/// Worthless unless something was purged where there was something, and nothing where there was not.
fn checked(way: Way, Measured { sample, purged, .. }: Measured) -> Sample {
    let wrong = match way {
        Way::Quiet => {
            (purged > 0).then(|| format!("{purged} records were purged before their time"))
        }
        Way::Purging => (purged == 0).then(|| "nothing was purged".to_owned()),
    };
    Sample { invalid: sample.invalid.or(wrong), ..sample }
}
