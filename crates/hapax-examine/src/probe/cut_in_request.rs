//! V13: half a request comes, then the whole one.

use std::collections::BTreeSet;

use super::{Probe, ProbeFuture};
use crate::{
    CutEnd, Defect, DefectClass, ExamRequest, Examiner, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
    overlap::{TrialFindings, judge_settled},
    wire::BrokenExchange,
};

pub(super) const PROBE: Probe = Probe {
    id: "V13",
    name: "cut-in-request",
    question: "Does half a request have no effect, and is its key free for the whole one?",
    needs: &[],
    operations_max: 18,
    run: |examiner, log| run(examiner, log),
};

const ENDS: [CutEnd; 3] = [CutEnd::Finish, CutEnd::Reset, CutEnd::Silence];

/// Where a request is cut, in hundredths.
#[derive(Debug, Clone, Copy)]
enum CutPart {
    /// Of what comes before the body.
    Head(usize),
    /// Of the body.
    Body(usize),
}

/// A request of which a part was sent.
struct CutRequest {
    request: ExamRequest,
    bytes: usize,
    left: BrokenExchange,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        let mut chance = examiner.chance(PROBE.id);
        for end in ENDS {
            // In the headers; at the beginning of the body, within it, and before its last byte.
            let parts = [
                CutPart::Head(chance.usize(1..100)),
                CutPart::Body(0),
                CutPart::Body(chance.usize(1..99)),
                CutPart::Body(99),
                CutPart::Body(100),
            ];
            let cut = cut_all(examiner, log, end, &parts).await?;
            // Whatever is done with what came before this is done when this is answered.
            let later = examiner.fresh()?;
            let later = examiner.ask(log, "a whole one, later", &later).await;
            if !later.succeeded() {
                findings = findings.unless_sound();
                break;
            }
            examiner.rest().await;
            let mut early = Vec::new();
            for one in &cut {
                early.push(examiner.effects(log, &one.request.marker).await?);
            }
            for (one, early) in cut.iter().zip(early) {
                if let Some(defects) = retry(examiner, log, one, early).await? {
                    findings.add(defects);
                }
            }
            if findings.is_decided() {
                break;
            }
        }
        Ok(findings.verdict("whole requests had no success"))
    })
}

/// A fresh operation for each offset, sent up to there.
async fn cut_all(
    examiner: &Examiner,
    log: &ProbeLog,
    end: CutEnd,
    parts: &[CutPart],
) -> Result<Vec<CutRequest>, ProbeInterruption> {
    let mut cut = Vec::new();
    let mut tried = BTreeSet::new();
    for part in parts {
        let request = examiner.fresh()?;
        let whole = request.http1(&examiner.address().authority());
        let (all, head) = (whole.bytes.len(), whole.body_at);
        let bytes = match part {
            CutPart::Head(percent) => (head * percent / 100).max(1),
            CutPart::Body(percent) => (head + (all - head) * percent / 100).min(all - 1),
        };
        if !tried.insert(bytes) {
            continue;
        }
        let label = format!("cut at byte {bytes} of {all}");
        let addressed = examiner.addressed(0, &request);
        match examiner.wire().cut_request(log, &label, addressed, (bytes, end)).await {
            Ok(left) => cut.push(CutRequest { request, bytes, left }),
            Err(failed) => log.note(format!("{label}: {}", failed.end.describe())),
        }
    }
    Ok(cut)
}

/// Sends the whole one, and judges both; nothing if that told nothing.
async fn retry(
    examiner: &Examiner,
    log: &ProbeLog,
    cut: &CutRequest,
    early: Option<u64>,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let CutRequest { request, bytes, left } = cut;
    let retry = examiner.ask_until_settled(log, "whole", request).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let mut defects = judge_duplicates(examiner, &[&left.exchange, &retry], effects);
    if let Some(early @ 1..) = early {
        defects.push(Defect {
            class: DefectClass::Safety,
            sentence: format!(
                "a request that ended after {bytes} of its {} bytes had {early} effects",
                left.exchange.request.len()
            ),
            advice: "act on a body only once as much of it has come as its length says",
            shown_by: vec![left.exchange.number],
        });
    }
    let after = format!("a request ended after {bytes} bytes");
    defects.extend(judge_settled(examiner, &after, &retry));
    Ok((retry.succeeded() || !defects.is_empty()).then_some(defects))
}
