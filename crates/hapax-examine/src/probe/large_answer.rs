//! V28: an answer that is larger than a column.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{difference, judge_crash, judge_duplicates},
};

pub(super) const PROBE: Probe = Probe {
    id: "V28",
    name: "large-answer",
    question: "Is a large answer replayed to its last byte?",
    needs: &[ProbeNeed::LargeAnswer],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

/// So large an answer must be at least, or it says nothing.
const ANSWER_BYTES_MIN: usize = 1024 * 1024;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(path) = &examiner.api().large_path else {
            return Ok(ProbeVerdict::inconclusive("there is no operation with a large answer"));
        };
        let there = |request: ExamRequest| request.at(&path.replace("{marker}", &request.marker));
        let Some(first) = examiner.succeed(log, "first", there).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let bytes = first.answer.body.len();
        if bytes < ANSWER_BYTES_MIN {
            return Ok(ProbeVerdict::inconclusive(format!(
                "the answer of {path} has {bytes} bytes: name an operation whose answer has {ANSWER_BYTES_MIN} or more"
            )));
        }
        let retry = examiner.ask_until_settled(log, "retry", &first.request).await;
        let Some(replay) = retry.answer() else {
            return Ok(ProbeVerdict::inconclusive(format!(
                "the retry was not answered: {}",
                retry.end.describe()
            )));
        };
        // The count knows nothing of this operation.
        let mut defects = judge_duplicates(examiner, &[&first.exchange, &retry], None);
        defects.extend(judge_crash(&retry, "the retry of a large answer"));
        if defects.is_empty() {
            defects.extend(difference(&first.answer, replay).map(|difference| Defect {
                class: DefectClass::Contract,
                sentence: format!(
                    "an answer of {bytes} bytes was not replayed as it was: {difference}"
                ),
                advice: "keep the whole answer, or refuse to keep it; never a part of it",
                shown_by: vec![first.exchange.number, retry.number],
            }));
        }
        let mut findings = ProbeFindings::default();
        findings.seen(defects);
        Ok(findings.verdict())
    })
}
