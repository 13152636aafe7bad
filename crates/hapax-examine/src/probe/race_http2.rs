//! V03: duplicates on one HTTP/2 connection, whose last frames leave in one write.

use super::{
    Probe, ProbeFuture, ProbeNeed,
    race::{RaceRoute, race_few},
};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V03",
    name: "race-http2",
    question: "Do duplicates that come at once on one HTTP/2 connection have one effect?",
    needs: &[ProbeNeed::Http2],
    operations_max: 0,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(race_few(examiner, log, RaceRoute::Streams))
}
