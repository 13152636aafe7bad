//! V06: a retry says the same in another order.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, Exchange, ProbeLog,
    body::reordered,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{judge_crash, judge_duplicates},
};

pub(super) const PROBE: Probe = Probe {
    id: "V06",
    name: "reordered-body",
    question: "Is the same content in another order answered, each time alike?",
    needs: &[],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let Some(text) = reordered(&examiner.api().body, &first.request) else {
            return Ok(ProbeVerdict::inconclusive(
                "the body has no members whose order could be another: it is neither an object of JSON nor a form",
            ));
        };
        // From here on the first is over, and what it is answered does not depend on when one asks.
        let retry = examiner.ask_until_settled(log, "retry as it was", &first.request).await;
        let request = first.request.with_body(text);
        let once = examiner.ask(log, "reordered", &request).await;
        let twice = examiner.ask(log, "reordered again", &request).await;
        let effects = examiner.effects(log, &first.request.marker).await?;
        let all = [&first.exchange, &retry, &once, &twice];
        let mut defects = judge_duplicates(examiner, &all, effects);
        let crash = [&once, &twice].into_iter();
        defects.extend(crash.filter_map(|one| judge_crash(one, "the same content reordered")));
        let (Some(one), Some(other)) = (once.answer(), twice.answer()) else {
            findings.unclear("the reordered body was not answered");
            if !defects.is_empty() {
                findings.seen(defects);
            }
            return Ok(findings.verdict());
        };
        log.note(match one.status {
            200..=299 => "reordered content is the same request".to_owned(),
            status => format!("reordered content is another request, and refused with {status}"),
        });
        if defects.is_empty() && (one.status, &one.body) != (other.status, &other.body) {
            defects.extend(judge_change(&once, &twice));
        }
        findings.seen(defects);
        Ok(findings.verdict())
    })
}

/// What is wrong if the same was answered differently; nothing if one was only told to come back.
fn judge_change(once: &Exchange, twice: &Exchange) -> Option<Defect> {
    let is_temporary = |one: &&Exchange| matches!(one.status(), Some(429 | 503));
    if [once, twice].iter().any(is_temporary) {
        return None;
    }
    let (one, other) = (once.status().unwrap_or_default(), twice.status().unwrap_or_default());
    Some(Defect {
        class: DefectClass::Contract,
        sentence: format!(
            "the same content reordered was answered with {one}, and with {other} or other content the next time: \
             clients cannot know what a retry comes to"
        ),
        advice: "compare requests by one rule, and answer by it each time",
        shown_by: vec![once.number, twice.number],
    })
}
