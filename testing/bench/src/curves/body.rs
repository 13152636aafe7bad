//! Against how large the stored answer is.

use super::{CALLERS, Course, curve::Curve, line};
use crate::{
    args::Statements,
    error::BenchError,
    report::{Axis, ReportSection, Scale},
    sample::{self, WayJob},
};

pub(super) const BYTES: [u64; 4] = [0, 512, 16 << 10, 1 << 20];
/// From this size on fewer ask at the same time, or most of them would only wait for the disk.
const LARGE_BYTES: u64 = 1 << 20;
const CALLERS_LARGE: usize = 8;

pub(super) fn run(course: &Course<'_>) -> Result<ReportSection, BenchError> {
    let ways = course.both_ways();
    let lines: Vec<_> = ways.iter().map(|(ground, way)| line(*ground, *way)).collect();
    let x = Axis { name: "bytes", scale: Scale::Log };
    let title = "Size of the stored answer, 64 callers (1 MiB: 8)";
    let curve = Curve::take(title, x, course.plan.rounds, (&lines, &BYTES), |at, bytes| {
        let (ground, way) = ways[at];
        let measure = course.measure(if bytes < LARGE_BYTES { CALLERS } else { CALLERS_LARGE });
        let answer_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let job = WayJob { statements: Statements::Prepared, answer_bytes };
        course.step(format!("{bytes} bytes, {}", lines[at]), || {
            sample::take(measure, job, ground, way)
        })
    })?;
    Ok(curve.section(Vec::new()))
}
