//! V23: the server is killed at every tenth of a request, and its client tries again.

use std::time::Duration;

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Examiner, ProbeInterruption, ProbeLog,
    recovery::{KillMoment, KillTrial},
};

pub(super) const PROBE: Probe = Probe {
    id: "V23",
    name: "kill-while-running",
    question: "Does a key survive a kill while its request runs, with one effect?",
    needs: &[ProbeNeed::KillHook, ProbeNeed::Count],
    // One that is measured, the kills, and another key.
    operations_max: KILLS_MAX + 2,
    run: |examiner, log| run(examiner, log),
};

/// Tenths of a request at which the server is killed, in an order of chance.
const TENTHS: [u32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Kills, with those that come too late.
const KILLS_MAX: u32 = 14;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let running = running(examiner, log).await?;
        let (mut hits, mut trials, mut lead) = (0, 0, Duration::ZERO);
        let mut order = TENTHS;
        examiner.chance(PROBE.id).shuffle(&mut order);
        for tenths in order {
            // Who kills is slow at times: once more, and sooner by that.
            for _ in 0..2 {
                if trials == KILLS_MAX {
                    break;
                }
                let moment = KillMoment::After { into: running * tenths / 10, lead };
                let trial = KillTrial::run(examiner, log, moment).await?;
                trial.note(log);
                trials += 1;
                let defects = trial.defects(examiner, log).await?;
                if !defects.is_empty() {
                    return Ok(ProbeVerdict::Fail { trials, defects });
                }
                lead = trial.lead;
                if trial.was_running() {
                    hits += 1;
                    break;
                }
            }
        }
        if hits < TENTHS.len() / 2 {
            return Ok(ProbeVerdict::inconclusive(format!(
                "a request takes {:.1} ms, and only {hits} of {trials} kills met one that was running; all others \
                 recovered: a way to make the server slow (`--slow-hook`) would help",
                running.as_secs_f64() * 1e3
            )));
        }
        Ok(ProbeVerdict::Pass { trials: u32::try_from(hits).unwrap_or(u32::MAX) })
    })
}

/// How long a request runs, made as slow as it can be.
async fn running(examiner: &Examiner, log: &ProbeLog) -> Result<Duration, ProbeInterruption> {
    let Some(slowness) = examiner.slow_server().await? else {
        return Ok(examiner.learned().latency);
    };
    let request = examiner.fresh()?;
    let patience = examiner.patience() + slowness;
    let asked = examiner.wire().ask(log, "slow", examiner.address(), &request, patience).await;
    examiner.fast_server().await?;
    Ok(asked.ended.saturating_sub(asked.began))
}
