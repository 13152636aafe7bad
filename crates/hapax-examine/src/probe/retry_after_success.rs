//! V01: somebody who heard of a success asks once more.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Defect, DefectClass, Examiner, ProbeLog, judge::judge_duplicates};

pub(super) const PROBE: Probe = Probe {
    id: "V01",
    name: "retry-after-success",
    question: "Does a retry after success have no second effect, and is its answer the first one?",
    needs: &[],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let request = examiner.fresh()?;
        let first = examiner.ask(log, "first", &request).await;
        if !first.succeeded() {
            return Ok(ProbeVerdict::inconclusive("the first request had no success"));
        }
        let retry = examiner.ask_until_settled(log, "retry", &request).await;
        let effects = examiner.effects(log, &request.marker).await?;
        let mut defects = judge_duplicates(examiner, &[&first, &retry], effects);
        let (Some(original), Some(replay)) = (first.answer(), retry.answer()) else {
            return Ok(ProbeVerdict::inconclusive("the retry was not answered"));
        };
        if (original.status, &original.body) != (replay.status, &replay.body) {
            defects.push(Defect {
                class: DefectClass::Contract,
                sentence: format!(
                    "the first answer was {} with {} bytes, the retry heard {} with {} others",
                    original.status,
                    original.body.len(),
                    replay.status,
                    replay.body.len()
                ),
                advice: "store the answer, and send it again byte by byte",
                shown_by: vec![first.number, retry.number],
            });
        }
        Ok(ProbeVerdict::of(1, defects))
    })
}
