//! V29: the effect is looked at while duplicates run.

use std::{future::Future, time::Duration};

use futures_util::future::{Either, select};

use super::{
    Probe, ProbeFuture, ProbeNeed,
    race::{RaceRoute, race},
};
use crate::{
    Defect, DefectClass, Examiner, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
    overlap::{TrialFindings, is_overlap},
};

pub(super) const PROBE: Probe = Probe {
    id: "V29",
    name: "reads-while-running",
    question: "Do reads never see an effect twice while duplicates run?",
    needs: &[ProbeNeed::Count],
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

const DUPLICATES: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const TRIALS: u32 = 3;
const ATTEMPTS_MAX: u32 = 6;
/// Looks at least, while duplicates run.
const LOOKS_MIN: u32 = 2;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        for _ in 0..ATTEMPTS_MAX {
            if let Some(defects) = look(examiner, log).await? {
                findings.add(defects);
            }
            if findings.is_decided() || findings.trials() >= TRIALS {
                break;
            }
        }
        Ok(findings.verdict(
            "effects could not be read often enough while duplicates ran: a slower operation would help",
        ))
    })
}

/// What was read while something ran.
#[derive(Debug, Clone, Copy, Default)]
struct EffectsRead {
    looks: u32,
    most: u64,
}

/// Duplicates at once, and more of them after the answer; nothing if nobody could look meanwhile.
async fn look(
    examiner: &Examiner,
    log: &ProbeLog,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let racing = || race(examiner, log, RaceRoute::Connections, &request, &DUPLICATES);
    let (raced, during) = looking(examiner, &request.marker, racing()).await?;
    let settled = examiner.ask_until_settled(log, "afterwards", &request).await;
    let (replayed, after) = looking(examiner, &request.marker, racing()).await?;
    let effects = examiner.effects(log, &request.marker).await?;
    let all: Vec<_> = raced.exchanges.iter().chain(&replayed.exchanges).chain([&settled]).collect();
    let mut defects = judge_duplicates(examiner, &all, effects);
    let (looks, most) = (during.looks + after.looks, during.most.max(after.most));
    log.note(format!("{looks} looks while duplicates ran saw {most} effects at most"));
    // If they stay, they are judged already.
    if most > 1 && effects.is_some_and(|effects| effects <= 1) {
        defects.push(Defect {
            class: DefectClass::Safety,
            sentence: format!(
                "while duplicates of one request ran, {most} effects could be read; later there was one"
            ),
            advice: "claim the key before anything is written that others can read",
            shown_by: all.iter().map(|exchange| exchange.number).collect(),
        });
    }
    let is_told = settled.succeeded()
        && during.looks >= LOOKS_MIN
        && is_overlap(&raced.exchanges.iter().collect::<Vec<_>>());
    Ok((is_told || !defects.is_empty()).then_some(defects))
}

/// Looks at the effects again and again, until this is done.
async fn looking<T>(
    examiner: &Examiner,
    marker: &str,
    doing: impl Future<Output = T>,
) -> Result<(T, EffectsRead), ProbeInterruption> {
    let mut doing = Box::pin(doing);
    let mut read = EffectsRead::default();
    loop {
        let look = Box::pin(async {
            let count = examiner.effects_now(marker).await;
            tokio::time::sleep(BETWEEN_LOOKS).await;
            count
        });
        match select(doing.as_mut(), look).await {
            Either::Left((done, _)) => return Ok((done, read)),
            Either::Right((count, _)) => {
                read.looks += 1;
                read.most = read.most.max(count?.unwrap_or_default());
            }
        }
    }
}
