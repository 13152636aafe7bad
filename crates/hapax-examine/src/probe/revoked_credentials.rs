//! V10: credentials that were revoked come with a key that was used while they were good.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, judge_crash, judge_duplicates, likeness, untold},
};

pub(super) const PROBE: Probe = Probe {
    id: "V10",
    name: "revoked-credentials",
    question: "Are revoked credentials refused, also by replays?",
    needs: &[ProbeNeed::RevokedCredentials],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(revoked) = &examiner.api().credentials.revoked else {
            return Ok(ProbeVerdict::inconclusive("no revoked credentials are known"));
        };
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let mut findings = ProbeFindings::default();
        let second = examiner
            .ask(log, "a used key with revoked credentials", &first.request.asked_by(revoked))
            .await;
        let effects = examiner.effects(log, &first.request.marker).await?;
        let (Some(answer), None) = (second.answer(), untold(&second)) else {
            return Ok(ProbeVerdict::inconclusive(untold(&second).unwrap_or_default()));
        };
        let mut defects = judge_duplicates(examiner, &[&first.exchange, &second], effects);
        defects.extend(judge_crash(&second, "a used key with revoked credentials"));
        let is_told = likeness(examiner, &first.answer, answer) == AnswerLikeness::SameEffect;
        if defects.is_empty() && (answer.is_success() || is_told) {
            defects.push(Defect {
                class: DefectClass::ContractHigh,
                sentence: format!(
                    "a request with revoked credentials and a used key was answered with {}: \
                     whoever was shut out is still told what was answered before",
                    answer.status
                ),
                advice: "ask whether credentials are still good before a stored answer is given",
                shown_by: vec![first.exchange.number, second.number],
            });
        }
        if !matches!(answer.status, 401 | 403) {
            let status = answer.status;
            log.note(format!(
                "revoked credentials are answered with {status}, not with 401 or 403"
            ));
        }
        findings.seen(defects);
        Ok(findings.verdict())
    })
}
