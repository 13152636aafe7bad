//! Against how many ask at the same time.

use super::{Course, curve::Curve, line};
use crate::{
    args::Statements,
    error::BenchError,
    report::{Axis, ReportSection, Scale},
    request::ANSWER_BYTES,
    sample::{self, WayJob},
};

pub(super) fn run(course: &Course<'_>) -> Result<ReportSection, BenchError> {
    let ways = course.both_ways();
    let lines: Vec<_> = ways.iter().map(|(ground, way)| line(*ground, *way)).collect();
    let x = Axis { name: "callers", scale: Scale::Log };
    let job = WayJob { statements: Statements::Prepared, answer_bytes: ANSWER_BYTES };
    let places = (&lines[..], &course.plan.callers[..]);
    let curve = Curve::take("Callers", x, course.plan.rounds, places, |at, callers| {
        let (ground, way) = ways[at];
        let measure = course.measure(usize::try_from(callers).unwrap_or(usize::MAX));
        course.step(format!("{callers} callers, {}", lines[at]), || {
            sample::take(measure, job, ground, way)
        })
    })?;
    Ok(curve.section(Vec::new()))
}
