//! V19: a request without a key.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, ProbeLog,
    findings::ProbeFindings,
    judge::{judge_crash, judge_refusal, untold},
    profile::RefusalReason,
};

pub(super) const PROBE: Probe = Probe {
    id: "V19",
    name: "missing-key",
    question: "Is a request without a key refused?",
    needs: &[],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let request = examiner.fresh()?.without_key();
        let exchange = examiner.ask(log, "a request without a key", &request).await;
        let effects = examiner.effects(log, &request.marker).await?;
        let (Some(answer), None) = (exchange.answer(), untold(&exchange)) else {
            return Ok(ProbeVerdict::inconclusive(untold(&exchange).unwrap_or_default()));
        };
        let declared = examiner.examination().declared.key_required;
        let mut findings = ProbeFindings::default();
        let asked = "a request without a key";
        let mut defects: Vec<_> = judge_crash(&exchange, asked)
            .into_iter()
            .chain(judge_refusal(&exchange, effects))
            .chain(examiner.judge_words(RefusalReason::MissingKey, &exchange, asked))
            .collect();
        if answer.is_success() && declared != Some(false) {
            defects.push(Defect {
                class: DefectClass::Hygiene,
                sentence: format!(
                    "a request without a key was answered with {} and acted on: \
                     a client that forgets the key is never told, until a retry has its effect twice",
                    answer.status
                ),
                advice: "refuse requests without a key with 400, or say that keys are optional (`--key-required false`)",
                shown_by: vec![exchange.number],
            });
        }
        findings.seen(defects);
        Ok(findings.verdict())
    })
}
