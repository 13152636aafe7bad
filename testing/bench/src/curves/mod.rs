//! `cargo xtask bench curves`: how requests per second and p99 grow.
//!
//! - one file for each part: `callers`, `keys`, `body`, `duplicates` and `retention`;
//! - `curve` measures at several places, and makes tables and plots of it;
//! - `stock` puts keys into a store beforehand, `place` is such a store, `mixed` what is asked of it.

mod body;
mod callers;
mod curve;
mod duplicates;
mod keys;
mod mixed;
mod place;
mod plan;
mod retention;
mod stock;

use std::{path::Path, sync::Arc};

pub(super) use self::plan::CurvesPlan;
use super::{
    error::BenchError,
    plan::PostgresChoice,
    progress::BenchProgress,
    run::BenchRun,
    sample::{Measure, StoreGround, StoreSample, StoreWay},
    server::BenchServer,
    turns::NamedWay as _,
};
use crate::args::{CurvesPart, CurvesStore};

/// Measures.
pub(super) fn measure(plan: &CurvesPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let server = match (&plan.postgres, plan.stores.contains(&CurvesStore::Postgres)) {
        (PostgresChoice::None, _) | (_, false) => None,
        (asked, true) => run.postgres(asked).map_err(|error| run.miss("PostgreSQL", &error)).ok(),
    };
    let (directory, progress) = (run.directory().to_owned(), run.progress.clone());
    let course = Course::new(plan, &directory, server.as_ref(), progress);
    course.progress.expect(plan.parts.iter().map(|part| course.steps(*part)).sum());
    for part in &plan.parts {
        match part {
            CurvesPart::Callers => run.add(callers::run(&course)?),
            CurvesPart::Keys => run.add(keys::run(&course)?),
            CurvesPart::Body => run.add(body::run(&course)?),
            CurvesPart::Duplicates => run.add(duplicates::run(&course)?),
            CurvesPart::Retention => {
                for ground in &course.grounds {
                    run.add(retention::run(&course, *ground)?);
                }
            }
        }
    }
    Ok(())
}

/// How many ask at the same time, unless that is what changes.
const CALLERS: usize = 64;

/// What all parts share.
struct Course<'a> {
    plan: &'a CurvesPlan,
    grounds: Vec<StoreGround<'a>>,
    progress: BenchProgress,
}

impl<'a> Course<'a> {
    fn new(
        plan: &'a CurvesPlan,
        directory: &'a Path,
        server: Option<&'a Arc<BenchServer>>,
        progress: BenchProgress,
    ) -> Self {
        let sqlite =
            plan.stores.contains(&CurvesStore::Sqlite).then_some(StoreGround::Sqlite(directory));
        let postgres = server.map(|server| StoreGround::Postgres(server));
        Self { plan, grounds: sqlite.into_iter().chain(postgres).collect(), progress }
    }

    /// Every store, ours and by hand.
    fn both_ways(&self) -> Vec<(StoreGround<'a>, StoreWay)> {
        let ways = |ground: &StoreGround<'a>| {
            [StoreWay::Baseline, StoreWay::Ours].map(|way| (*ground, way))
        };
        self.grounds.iter().flat_map(ways).collect()
    }

    fn measure(&self, callers: usize) -> Measure {
        Measure { duration: self.plan.duration, callers, at_half: false }
    }

    /// One measurement.
    fn step(
        &self,
        what: String,
        take: impl FnOnce() -> Result<StoreSample, BenchError>,
    ) -> Result<StoreSample, BenchError> {
        self.progress.begin(what)?;
        let sample = take();
        self.progress.inc(1);
        sample
    }

    fn steps(&self, part: CurvesPart) -> u64 {
        let (plan, stores) = (self.plan, self.grounds.len());
        let measured = stores
            * match part {
                CurvesPart::Callers => plan.callers.len() * 2,
                CurvesPart::Keys => plan.keys.len(),
                CurvesPart::Body => body::BYTES.len() * 2,
                CurvesPart::Duplicates => duplicates::PERCENT.len(),
                CurvesPart::Retention => 2,
            };
        u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
    }
}

/// What a line of a curve is called.
fn line(ground: StoreGround<'_>, way: StoreWay) -> String {
    format!("{}, {}", ground.name(), way.label())
}
