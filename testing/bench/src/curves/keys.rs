//! Against how many keys are in the store.

use std::collections::HashMap;

use super::{
    CALLERS, Course,
    curve::Curve,
    line,
    mixed::Mix,
    place::{DATABASE, Measured, StorePlace},
    stock::{Age, Stock},
};
use crate::{
    error::BenchError,
    figures::{BoundedFigure, FigureTarget},
    report::{Axis, ReportSection, Scale},
    sample::{StoreSample, StoreWay},
};

/// Stores of this size are filled once and used in every round: what a round adds does not count.
/// Smaller ones are filled anew for each.
const KEPT: u64 = 1_000_000;
/// How much of the rate must be left at the largest size.
const FLAT: f64 = 0.9;

/// Stores that are kept, by line and size, with the number of the next fresh request.
type Kept<'a> = HashMap<(usize, u64), (StorePlace<'a>, u64)>;

pub(super) fn run(course: &Course<'_>) -> Result<ReportSection, BenchError> {
    let lines: Vec<_> = course.grounds.iter().map(|ground| line(*ground, StoreWay::Ours)).collect();
    let x = Axis { name: "keys in the store", scale: Scale::Log };
    let sizes = &course.plan.keys;
    let (title, mut kept) = ("Keys in the store, 64 callers", Kept::new());
    let curve = Curve::take(title, x, course.plan.rounds, (&lines, sizes), |at, keys| {
        course.step(format!("{keys} keys, {}", lines[at]), || take(course, &mut kept, at, keys))
    });
    for (place, _) in kept.into_values() {
        place.remove()?;
    }
    let curve = curve?;
    let ends = sizes.last().copied().zip(sizes.first().copied());
    let claims = lines.iter().enumerate().filter_map(|(at, line)| {
        let measured = curve.along(at, ends?, |sample| sample.per_second)?;
        let what = format!("{line}: requests/s with the most keys, against the fewest");
        Some(BoundedFigure { what, measured, unit: "x", target: Some(FigureTarget::AtLeast(FLAT)) })
    });
    let claims = claims.collect();
    Ok(curve.section(claims))
}

fn take<'a>(
    course: &Course<'a>,
    kept: &mut Kept<'a>,
    at: usize,
    keys: u64,
) -> Result<StoreSample, BenchError> {
    let (place, first) = match kept.remove(&(at, keys)) {
        Some(place) => place,
        None => {
            let stock = Stock { keys, age: Age::Young };
            let name = format!("{DATABASE}_{keys}");
            (StorePlace::stocked(course.grounds[at], &name, stock)?, 0)
        }
    };
    let mix = Mix { retries_percent: 0, finished: 0..0, first };
    let measured = place.measure(course.measure(CALLERS), mix, None);
    if keys < KEPT {
        place.remove()?;
        return Ok(measured?.sample);
    }
    let next = measured.as_ref().map_or(first, |Measured { upcoming, .. }| *upcoming);
    kept.insert((at, keys), (place, next));
    Ok(measured?.sample)
}
