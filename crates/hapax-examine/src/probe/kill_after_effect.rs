//! V24: the server is killed after the effect and before its answer, and the client tries again.

use std::time::Duration;

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Examiner, ProbeLog,
    recovery::{KillMoment, KillTrial},
};

pub(super) const PROBE: Probe = Probe {
    id: "V24",
    name: "kill-after-effect",
    question: "Is an effect not repeated if the server is killed before it answers?",
    needs: &[ProbeNeed::KillHook, ProbeNeed::Count],
    // One for each kill, and another key.
    operations_max: 13,
    run: |examiner, log| run(examiner, log),
};

/// Kills as soon as the effect is counted.
const COUNTED: u32 = 3;
/// Kills around the moment of the effect.
const AROUND: u32 = 9;

/// Between which moments of a request its effect comes about, as far as is known.
#[derive(Debug)]
struct EffectMoment {
    /// Who was killed then had none.
    earliest: Duration,
    /// Who was killed then had it.
    latest: Option<Duration>,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let (mut hits, mut before, mut answered, mut lead) = (0, 0, 0, Duration::ZERO);
        let mut effect = EffectMoment { earliest: Duration::ZERO, latest: None };
        for number in 0..COUNTED + AROUND {
            let moment = if number < COUNTED {
                KillMoment::Counted
            } else {
                KillMoment::After { into: effect.next(), lead }
            };
            let trial = KillTrial::run(examiner, log, moment).await?;
            trial.note(log);
            let defects = trial.defects(examiner, log).await?;
            if !defects.is_empty() {
                return Ok(ProbeVerdict::Fail { trials: number + 1, defects });
            }
            effect.learn(&trial);
            lead = trial.lead;
            if trial.was_after_effect() {
                hits += 1;
            } else if trial.was_running() {
                before += 1;
            } else {
                answered += 1;
            }
        }
        if hits == 0 {
            return Ok(ProbeVerdict::inconclusive(format!(
                "of {} kills {before} came before the effect and {answered} after the answer, none between, and \
                 all recovered: what makes the time between them longer would help (a slow upstream: \
                 `--upstream-double` with `--upstream-delay`)",
                COUNTED + AROUND
            )));
        }
        Ok(ProbeVerdict::Pass { trials: hits })
    })
}

impl EffectMoment {
    /// Halfway between what is known.
    fn next(&self) -> Duration {
        match self.latest {
            // No request is like another: the two can have come about the wrong way around.
            Some(latest) => self.earliest.min(latest) + latest.saturating_sub(self.earliest) / 2,
            None => self.earliest + self.earliest / 10,
        }
    }

    fn learn(&mut self, trial: &KillTrial) {
        if trial.kept > 0 {
            self.latest = Some(self.latest.map_or(trial.into, |latest| latest.min(trial.into)));
        } else {
            self.earliest = self.earliest.max(trial.into);
        }
    }
}
