//! V25: the server is killed at rest and started again, and somebody retries what had succeeded before.

use std::time::Duration;

use tokio::time::Instant;

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
};

pub(super) const PROBE: Probe = Probe {
    id: "V25",
    name: "restart",
    question: "Is a key still known after a restart?",
    needs: &[ProbeNeed::KillHook],
    // Two keys, and another one.
    operations_max: 3,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut asked = Vec::new();
        for _ in 0..2 {
            let request = examiner.fresh()?;
            let first = examiner.ask(log, "first", &request).await;
            if !first.succeeded() {
                return Ok(ProbeVerdict::inconclusive("the first request had no success"));
            }
            // Who counts late has not yet written it, perhaps.
            examiner.effects(log, &request.marker).await?;
            asked.push((request, first));
        }
        let is_gone = examiner.kill_server_at_rest(log).await?;
        examiner.start_server(log).await?;
        if !is_gone {
            return Ok(ProbeVerdict::inconclusive(
                "the server went on taking connections when it was killed: `--kill-cmd` must end what answers here",
            ));
        }
        let mut defects = Vec::new();
        for (request, first) in &asked {
            defects.extend(retried(examiner, log, request, first).await?);
            if !defects.is_empty() {
                break;
            }
        }
        Ok(ProbeVerdict::of(2, defects))
    })
}

/// What is wrong with the retry of a request that had been answered before the restart.
async fn retried(
    examiner: &Examiner,
    log: &ProbeLog,
    request: &ExamRequest,
    first: &Exchange,
) -> Result<Vec<Defect>, ProbeInterruption> {
    let is_kept = is_kept(examiner, &request.marker).await?;
    let retries = examiner.retry_until_success(log, "retry", request).await?;
    let effects = examiner.effects(log, &request.marker).await?;
    let asked: Vec<_> = std::iter::once(first).chain(&retries).collect();
    let mut defects = judge_duplicates(examiner, &asked, effects);
    for defect in &mut defects {
        defect.sentence = format!(
            "a request was answered, the server restarted, and the request retried: {}",
            defect.sentence
        );
        defect.advice = "keep keys where effects are kept, and write both in one transaction";
    }
    let (Some(last), Some(original)) = (retries.last(), first.answer()) else { return Ok(defects) };
    let shown_by = vec![first.number, last.number];
    if !is_kept && effects == Some(1) {
        let sentence = format!(
            "a request was answered with {}, and after a restart its effect was gone, until it was retried",
            original.status
        );
        let advice = "answer with success only after the effect is durable";
        defects.push(Defect { class: DefectClass::Safety, sentence, advice, shown_by });
        return Ok(defects);
    }
    match last.answer() {
        Some(replay) if replay.is_success() => {
            if defects.is_empty()
                && (replay.status, &replay.body) != (original.status, &original.body)
            {
                defects.push(Defect {
                    class: DefectClass::Contract,
                    sentence: format!(
                        "a request was answered with {} and {} bytes, and after a restart its retry with {} and {} \
                         others",
                        original.status,
                        original.body.len(),
                        replay.status,
                        replay.body.len()
                    ),
                    advice: "keep the answer where the key is kept, and send it again byte by byte",
                    shown_by,
                });
            }
        }
        Some(_) | None => {
            defects.push(unanswered(examiner, log, original.status, last, shown_by).await?)
        }
    }
    Ok(defects)
}

/// Whether the effect is there, where somebody counts: who starts may show it only some time later.
async fn is_kept(examiner: &Examiner, marker: &str) -> Result<bool, ProbeInterruption> {
    let until = Instant::now() + examiner.examination().bounds.recovery;
    while examiner.effects_now(marker).await? == Some(0) {
        if Instant::now() >= until {
            return Ok(false);
        }
        examiner.rest_for(Duration::from_millis(50)).await?;
    }
    Ok(true)
}

/// That no retry succeeds after the restart, if another request does.
async fn unanswered(
    examiner: &Examiner,
    log: &ProbeLog,
    status: u16,
    last: &Exchange,
    shown_by: Vec<u32>,
) -> Result<Defect, ProbeInterruption> {
    let recovery = examiner.examination().bounds.recovery.as_secs_f32();
    if !examiner.is_well(log).await? {
        return Err(ProbeInterruption::Hook(format!(
            "within {recovery} s after the server was started, no request succeeded, not even with a new key"
        )));
    }
    Ok(Defect {
        class: DefectClass::Liveness,
        sentence: format!(
            "a request was answered with {status}, and within {recovery} s after a restart no retry of it was \
             answered with success: the last was {}",
            last.end.describe()
        ),
        advice: "keep the answer where the key is kept, so that a retry after a restart hears it",
        shown_by,
    })
}
