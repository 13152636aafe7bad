//! V04: duplicates that come at once to several addresses of one API.

use super::{
    Probe, ProbeFuture, ProbeNeed,
    race::{RaceRoute, race_few},
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

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(race_few(examiner, log, RaceRoute::Addresses))
}
