//! V04: duplicates that come at once to several addresses of one API.

use super::{
    Probe, ProbeFuture, ProbeNeed,
    race::{RaceRoute, race_all},
};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V04",
    name: "race-over-addresses",
    question: "Do duplicates that come at once to two instances have one effect?",
    needs: &[ProbeNeed::SecondAddress],
    operations_max: 0,
    run: |examiner, log| run(examiner, log),
};

/// Duplicates that come at once; more of them show no more, as one is enough to be the second.
const RACERS_MAX: usize = 8;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let bounds = &examiner.examination().bounds;
        let mut racers: Vec<_> = bounds.racers.iter().map(|one| RACERS_MAX.min(*one)).collect();
        racers.dedup();
        race_all(examiner, log, RaceRoute::Addresses, &racers).await
    })
}
