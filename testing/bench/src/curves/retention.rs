//! What it costs that records past retention are removed while many ask.

use std::time::Duration;

use super::{
    CALLERS, Course,
    mixed::Mix,
    place::{DATABASE, StorePlace},
    stock::{Age, Stock},
};
use crate::{
    error::BenchError,
    figures::{BoundedFigure, MeasuredSpread},
    load::float,
    report::ReportSection,
    sample::{COLUMNS, StoreGround, StoreSample},
    turns::{NamedWay, WayTurns},
};

/// How soon a purge begins; it goes on as long as there is enough to remove. Where there is nothing
/// the engine looks as seldom as ever.
const PURGE_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetentionWay {
    Quiet,
    Purging,
}

impl NamedWay for RetentionWay {
    fn label(self) -> &'static str {
        match self {
            Self::Quiet => "nothing past retention",
            Self::Purging => "purging meanwhile",
        }
    }
}

pub(super) fn run(
    course: &Course<'_>,
    ground: StoreGround<'_>,
) -> Result<ReportSection, BenchError> {
    let turns =
        WayTurns::take(course.plan.rounds, &[RetentionWay::Quiet, RetentionWay::Purging], |way| {
            course.step(format!("{}, {}", ground.name(), way.label()), || take(course, ground, way))
        })?;
    let ratio = |of| turns.ratio(RetentionWay::Purging, RetentionWay::Quiet, of);
    let purged = turns.of(RetentionWay::Purging).iter().map(|sample| float(sample.purged));
    let claims = [
        BoundedFigure::at_least(
            "requests/s while purging, against nothing to purge",
            ratio(|sample| Some(sample.per_second)),
            "x",
            0.9,
        ),
        BoundedFigure::at_most(
            "p99 latency while purging, against nothing to purge",
            ratio(|sample| Some(sample.p99_ms)),
            "x",
            3.0,
        ),
        BoundedFigure::at_least(
            "records purged in each measurement, its warm-up included",
            MeasuredSpread::of(purged),
            "",
            1.0,
        ),
    ];
    let keys = course.plan.expired;
    let title = format!("{}, {keys} keys past retention, {CALLERS} callers", ground.name());
    Ok(turns.section(title, COLUMNS, claims))
}

fn take(
    course: &Course<'_>,
    ground: StoreGround<'_>,
    way: RetentionWay,
) -> Result<StoreSample, BenchError> {
    let (age, purge_every) = match way {
        RetentionWay::Quiet => (Age::Young, None),
        RetentionWay::Purging => (Age::Expired, Some(PURGE_EVERY)),
    };
    let stock = Stock { keys: course.plan.expired, age };
    let place = StorePlace::stocked(ground, DATABASE, stock)?;
    let mix = Mix { retries_percent: 0, finished: 0..0, first: 0 };
    let measured = place.measure(course.measure(CALLERS), mix, purge_every);
    place.remove()?;
    Ok(checked(way, measured?.sample))
}

/// Worthless unless something was purged where there was something, and nothing where there was not.
fn checked(way: RetentionWay, sample: StoreSample) -> StoreSample {
    let wrong = match (way, sample.purged) {
        (RetentionWay::Quiet, 0) | (RetentionWay::Purging, 1..) => None,
        (RetentionWay::Quiet, purged) => {
            Some(format!("{purged} records were purged before their time"))
        }
        (RetentionWay::Purging, 0) => Some("nothing was purged".to_owned()),
    };
    StoreSample { invalid: sample.invalid.or(wrong), ..sample }
}
