//! Against how many requests are retries of finished ones.

use super::{
    CALLERS, Course,
    curve::Curve,
    line,
    mixed::Mix,
    place::{DATABASE, StorePlace},
    stock::{Age, Stock},
};
use crate::{
    error::BenchError,
    report::{Axis, ReportSection, Scale},
    sample::StoreWay,
};

pub(super) const PERCENT: [u64; 4] = [0, 50, 90, 99];
/// Any of these is retried.
const FINISHED: Stock = Stock { keys: 10_000, age: Age::Young };

pub(super) fn run(course: &Course<'_>) -> Result<ReportSection, BenchError> {
    let lines: Vec<_> = course.grounds.iter().map(|ground| line(*ground, StoreWay::Ours)).collect();
    let x = Axis { name: "% retries", scale: Scale::Linear };
    let (title, places) =
        ("Retries of 10,000 finished requests, 64 callers", (&lines[..], &PERCENT[..]));
    let curve = Curve::take(title, x, course.plan.rounds, places, |at, retries_percent| {
        course.step(format!("{retries_percent} % retries, {}", lines[at]), || {
            let place = StorePlace::stocked(course.grounds[at], DATABASE, FINISHED)?;
            let mix = Mix { retries_percent, finished: FINISHED.numbers(), first: 0 };
            let measured = place.measure(course.measure(CALLERS), mix, None);
            place.remove()?;
            Ok(measured?.sample)
        })
    })?;
    Ok(curve.section(Vec::new()))
}
