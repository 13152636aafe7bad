//! V18: the server fails, before or after its effect, and its client tries again.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, Exchange, Hook, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
};

pub(super) const PROBE: Probe = Probe {
    id: "V18",
    name: "failed-then-retried",
    question: "Has a request that failed with 5xx one effect at most, however often it is retried?",
    needs: &[ProbeNeed::FailHook],
    // For each of two places: two tries, and another key.
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

/// How often a failure is induced until one comes about: somebody else's request may take it.
const TRIES: u32 = 2;

/// Where the server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailurePlace {
    BeforeEffect,
    AfterEffect,
}

/// A request that failed, and its retries.
#[derive(Debug)]
struct FailedRequest {
    place: FailurePlace,
    request: ExamRequest,
    first: Exchange,
    retries: Vec<Exchange>,
    effects: Option<u64>,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let hooks = &examiner.examination().hooks;
        let places = [
            (FailurePlace::BeforeEffect, &hooks.fail_before),
            (FailurePlace::AfterEffect, &hooks.fail_after),
        ];
        let (mut trials, mut defects, mut missed) = (0, Vec::new(), Vec::new());
        for (place, hook) in places {
            let Some(hook) = hook else { continue };
            match FailedRequest::induced(examiner, log, place, hook).await? {
                Some(failed) => {
                    trials += 1;
                    match failed.defects(examiner, log).await? {
                        Ok(found) => defects.extend(found),
                        Err(why) => missed.push(why),
                    }
                }
                None => missed.push(format!(
                    "the hook that lets the next execution fail {} did not: requests were not answered with 5xx",
                    place.describe()
                )),
            }
        }
        if defects.is_empty() && !missed.is_empty() {
            return Ok(ProbeVerdict::inconclusive(missed.join("; ")));
        }
        Ok(ProbeVerdict::of(trials, defects))
    })
}

impl FailurePlace {
    fn describe(self) -> &'static str {
        match self {
            Self::BeforeEffect => "before its effect",
            Self::AfterEffect => "after its effect",
        }
    }
}

impl FailedRequest {
    /// Lets a request fail, and retries it; nothing if it does not fail.
    async fn induced(
        examiner: &Examiner,
        log: &ProbeLog,
        place: FailurePlace,
        hook: &Hook,
    ) -> Result<Option<Self>, ProbeInterruption> {
        for _ in 0..TRIES {
            examiner.hook(Some(hook), "lets the server fail").await?;
            log.note(format!("the next execution was made to fail {}", place.describe()));
            let request = examiner.fresh()?;
            let first = examiner.ask(log, "first", &request).await;
            if first.status().is_none_or(|status| status < 500) {
                continue;
            }
            let retries = examiner.retry_until_success(log, "retry", &request).await?;
            let effects = examiner.effects(log, &request.marker).await?;
            return Ok(Some(Self { place, request, first, retries, effects }));
        }
        Ok(None)
    }

    /// What is wrong; why that cannot be told, if it cannot.
    async fn defects(
        &self,
        examiner: &Examiner,
        log: &ProbeLog,
    ) -> Result<Result<Vec<Defect>, String>, ProbeInterruption> {
        let asked: Vec<_> = std::iter::once(&self.first).chain(&self.retries).collect();
        let mut defects = judge_duplicates(examiner, &asked, self.effects);
        for defect in &mut defects {
            let (place, status) = (self.place.describe(), self.first.status().unwrap_or_default());
            defect.sentence = format!(
                "a request failed with {status} {place} and was retried: {}",
                defect.sentence
            );
        }
        let Some(last) = self.retries.last() else { return Ok(Ok(defects)) };
        if last.succeeded() {
            defects.extend(self.undeclared(examiner, last));
            return Ok(Ok(defects));
        }
        let happened =
            self.effects.map_or(self.place == FailurePlace::AfterEffect, |effects| effects > 0);
        let is_failure = last.status().is_some_and(|status| status >= 500 && status != 503);
        let is_declared = examiner.examination().declared.errors_kept == Some(true);
        if is_failure && (happened || is_declared) {
            // The failure is what is kept: its client knows that it must look.
            return Ok(Ok(defects));
        }
        if !examiner.is_well(log).await? {
            return Ok(Err(format!(
                "after the failure {}, requests with other keys had no success either: the hook must let one \
                 execution fail, and no more",
                self.place.describe()
            )));
        }
        defects.push(self.unresolved(examiner, last, is_failure));
        Ok(Ok(defects))
    }

    /// That no retry succeeds, while others do.
    fn unresolved(&self, examiner: &Examiner, last: &Exchange, is_failure: bool) -> Defect {
        let shown_by = vec![self.first.number, last.number];
        let (place, status) = (self.place.describe(), self.first.status().unwrap_or_default());
        let (retries, end) = (self.retries.len(), last.end.describe());
        let recovery = examiner.examination().bounds.recovery.as_secs_f32();
        let is_refused =
            last.status().is_some_and(|status| matches!(status, 400..=408 | 410..=424));
        if is_failure || is_refused {
            return Defect {
                class: DefectClass::Contract,
                sentence: format!(
                    "a request failed with {status} {place}, and nothing happened; all of its {retries} retries \
                     were in vain, the last was {end}, while a new key was answered with success"
                ),
                advice: "free the key of what failed without an effect, or declare that failures are kept",
                shown_by,
            };
        }
        Defect {
            class: DefectClass::Liveness,
            sentence: format!(
                "a request failed with {status} {place}; within {recovery} s none of its {retries} retries was \
                 settled, the last was {end}, while a new key was answered with success"
            ),
            advice: "settle a key also when its execution fails: free it, or keep the failure",
            shown_by,
        }
    }

    /// That the failure was to be kept, and was not.
    fn undeclared(&self, examiner: &Examiner, last: &Exchange) -> Option<Defect> {
        let status = self.first.status()?;
        // With 503 it says itself that it wants to be asked again.
        if examiner.examination().declared.errors_kept != Some(true) || status == 503 {
            return None;
        }
        Some(Defect {
            class: DefectClass::Contract,
            sentence: format!(
                "failures are said to be kept, and a request that failed with {status} {} was answered with {} \
                 when it was retried ({})",
                self.place.describe(),
                last.status().unwrap_or_default(),
                self.request.marker
            ),
            advice: "keep the failure as the answer of its key, or do not say so",
            shown_by: vec![self.first.number, last.number],
        })
    }
}
