//! One request during which the server is killed, and what came of it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
};

/// When the server is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KillMoment {
    /// So long after the request began; to kill takes some time too, which is `lead`.
    After { into: Duration, lead: Duration },
    /// As soon as its effect is counted, or it was answered.
    Counted,
}

/// A request, a kill while it runs, a start, and retries until one succeeds.
#[derive(Debug)]
pub(crate) struct KillTrial {
    request: ExamRequest,
    first: Exchange,
    retries: Vec<Exchange>,
    /// When the server had been told to end, after the request began.
    pub(crate) into: Duration,
    /// How long it took to tell it.
    pub(crate) lead: Duration,
    /// How many effects there were once the server had started again, before the retry.
    pub(crate) kept: u64,
    effects: u64,
}

impl KillTrial {
    /// Asks, kills, starts, and asks again.
    pub(crate) async fn run(
        examiner: &Examiner,
        log: &ProbeLog,
        moment: KillMoment,
    ) -> Result<Self, ProbeInterruption> {
        let request = examiner.fresh()?;
        let slowness = examiner.slow_server().await?.unwrap_or_default();
        let is_answered = AtomicBool::new(false);
        let asking = async {
            if let KillMoment::After { into, lead } = moment {
                sleep(lead.saturating_sub(into)).await;
            }
            let patience = examiner.patience() + slowness;
            let wire = examiner.wire();
            let first = wire.ask(log, "first", examiner.address(), &request, patience).await;
            is_answered.store(true, Ordering::Relaxed);
            first
        };
        let killing = async {
            wait(examiner, moment, &request, &is_answered).await?;
            let ordered = log.elapsed();
            let lead = examiner.kill_server(log).await?.lead;
            examiner.start_server(log).await?;
            Ok::<_, ProbeInterruption>((ordered, lead))
        };
        let (first, killed) = tokio::join!(asking, killing);
        // Some are slow also after a start. Why there was none is told first.
        let made_fast = examiner.fast_server().await;
        let (ordered, lead) = killed?;
        made_fast?;
        let kept = examiner.effects(log, &request.marker).await?.unwrap_or_default();
        let retries = examiner.retry_until_success(log, "retry", &request).await?;
        let effects = examiner.effects(log, &request.marker).await?.unwrap_or_default();
        let into = (ordered + lead).saturating_sub(first.began);
        Ok(Self { request, first, retries, into, lead, kept, effects })
    }

    /// Whether the server ended while the request was running: it was sent, and never answered with success.
    pub(crate) fn was_running(&self) -> bool {
        self.first.sent.is_some() && self.first.status().is_none_or(|status| status >= 500)
    }

    /// Whether it ended between the effect and its answer.
    pub(crate) fn was_after_effect(&self) -> bool {
        self.was_running() && self.kept > 0
    }

    /// What is wrong with what came of it.
    pub(crate) async fn defects(
        &self,
        examiner: &Examiner,
        log: &ProbeLog,
    ) -> Result<Vec<Defect>, ProbeInterruption> {
        let asked: Vec<_> = std::iter::once(&self.first).chain(&self.retries).collect();
        let mut defects = judge_duplicates(examiner, &asked, Some(self.effects));
        if let Some(last) = self.retries.last()
            && !last.succeeded()
        {
            defects.push(self.stuck(examiner, log, last).await?);
        }
        for defect in &mut defects {
            defect.sentence = format!(
                "the server was killed {} ms into a request ({}) and started again: {}",
                self.into.as_millis(),
                self.fate(),
                defect.sentence
            );
        }
        Ok(defects)
    }

    /// That no retry succeeds, if another request does.
    async fn stuck(
        &self,
        examiner: &Examiner,
        log: &ProbeLog,
        last: &Exchange,
    ) -> Result<Defect, ProbeInterruption> {
        let recovery = examiner.examination().bounds.recovery.as_secs_f32();
        if !examiner.is_well(log).await? {
            return Err(ProbeInterruption::Hook(format!(
                "within {recovery} s after the server was started, no request succeeded, not even with a new key"
            )));
        }
        let sentence = format!(
            "within {recovery} s no retry of it succeeded: the last of {} was {}, while a new key was answered with \
             success ({} effects)",
            self.retries.len(),
            last.end.describe(),
            self.effects
        );
        let advice = "free the key of what never came to its end when the server starts, or after a lease, or finish it";
        let shown_by = vec![self.first.number, last.number];
        Ok(Defect { class: DefectClass::Liveness, sentence, advice, shown_by })
    }

    /// What the kill met, in words.
    pub(crate) fn fate(&self) -> &'static str {
        match (self.was_running(), self.kept > 0) {
            (true, true) => "after its effect, before its answer",
            (true, false) => "before its effect",
            (false, _) if self.first.succeeded() => "after its answer",
            (false, _) => "which it had refused or never heard",
        }
    }

    /// Notes when it was, and what it met.
    pub(crate) fn note(&self, log: &ProbeLog) {
        let (marker, into) = (&self.request.marker, self.into.as_millis());
        log.note(format!("{marker}: killed after {into} ms, {}", self.fate()));
    }
}

/// Waits for the moment at which the server is told to end.
async fn wait(
    examiner: &Examiner,
    moment: KillMoment,
    request: &ExamRequest,
    is_answered: &AtomicBool,
) -> Result<(), ProbeInterruption> {
    match moment {
        KillMoment::After { into, lead } => sleep(into.saturating_sub(lead)).await,
        KillMoment::Counted => {
            let until = Instant::now() + examiner.examination().bounds.answer;
            while !is_answered.load(Ordering::Relaxed) && Instant::now() < until {
                if examiner.effects_now(&request.marker).await?.is_some_and(|count| count > 0) {
                    break;
                }
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    Ok(())
}
