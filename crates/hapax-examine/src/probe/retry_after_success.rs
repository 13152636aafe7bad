//! V01: somebody who heard of a success asks once more.

use super::{Probe, ProbeFuture};
use crate::{
    Defect, DefectClass, Examiner, Exchange, ProbeLog, RawAnswer,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{difference, judge_crash, judge_duplicates},
};

pub(super) const PROBE: Probe = Probe {
    id: "V01",
    name: "retry-after-success",
    question: "Does a retry after success have no second effect, and is its answer the first one?",
    needs: &[],
    operations_max: OPERATIONS,
    run: |examiner, log| run(examiner, log),
};

/// More than one: what is read where it is late is late at times only.
const OPERATIONS: u32 = 3;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        for _ in 0..OPERATIONS {
            let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
                findings.unclear(NO_SUCCESS);
                break;
            };
            let retry = examiner.ask_until_settled(log, "retry", &first.request).await;
            let effects = examiner.effects(log, &first.request.marker).await?;
            let mut defects = judge_duplicates(examiner, &[&first.exchange, &retry], effects);
            let Some(replay) = retry.answer() else {
                findings.unclear(format!("the retry was not answered: {}", retry.end.describe()));
                continue;
            };
            // Of what happened twice, or was told as if it had, the answers differ anyway.
            if defects.is_empty() {
                defects.extend(judge_replay(examiner, &first.answer, &retry, replay));
                defects.iter_mut().for_each(|one| one.shown_by.insert(0, first.exchange.number));
            }
            findings.seen(defects);
            if findings.has_defects() {
                break;
            }
        }
        Ok(findings.verdict())
    })
}

/// What is wrong with what a retry was told after a success.
fn judge_replay(
    examiner: &Examiner,
    first: &RawAnswer,
    retry: &Exchange,
    replay: &RawAnswer,
) -> Option<Defect> {
    let status = replay.status;
    let (class, sentence, advice) = if examiner.comes_back(replay) {
        let waited = examiner.examination().bounds.recovery;
        (
            DefectClass::Liveness,
            format!(
                "a request was answered with {}, and after {waited:.0?} its retries are still told to come back \
                 ({status}): who lost the first answer never learns what happened",
                first.status
            ),
            "keep the answer with the key, and give it to whoever asks again",
        )
    } else if let Some(crash) = judge_crash(retry, "a retry after success") {
        return Some(crash);
    } else if !replay.is_success() {
        (
            DefectClass::ContractHigh,
            format!(
                "a request was answered with {}, and its retry was refused with {status}: \
                 who lost the first answer takes a success for a failure",
                first.status
            ),
            "answer a retry with what the first request was answered with",
        )
    } else if replay.body.is_empty() && !first.body.is_empty() {
        (
            DefectClass::ContractHigh,
            format!(
                "a request was answered with {} bytes, and its retry with {status} and nothing: \
                 who lost the first answer never learns what it was",
                first.body.len()
            ),
            "keep the answer with the key, not only that there was one",
        )
    } else {
        let difference = difference(first, replay)?;
        (
            DefectClass::Contract,
            format!("a retry after success was not given the first answer: {difference}"),
            "store the answer, and send it again byte by byte",
        )
    };
    Some(Defect { class, sentence, advice, shown_by: vec![retry.number] })
}
