//! V30: a retry of the same request at another time, from another place, by another program.

use super::{Probe, ProbeFuture};
use crate::{
    Examiner, ProbeInterruption, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{judge_duplicates, judge_later_retry},
};

pub(super) const PROBE: Probe = Probe {
    id: "V30",
    name: "other-circumstances",
    question: "Is a retry with another date, from another address or client the same request?",
    needs: &[],
    operations_max: 3,
    run: |examiner, log| run(examiner, log),
};

/// What is other in a retry, in words, and the headers that say it, once and then once more.
#[derive(Debug)]
struct Circumstance {
    what: &'static str,
    headers: [&'static [(&'static str, &'static str)]; 2],
}

const CIRCUMSTANCES: &[Circumstance] = &[
    Circumstance {
        what: "with another date of the client",
        headers: [
            &[("Date", "Tue, 01 Jul 2025 10:00:00 GMT")],
            &[("Date", "Tue, 01 Jul 2025 11:30:00 GMT")],
        ],
    },
    Circumstance {
        what: "from another address",
        headers: [
            &[("X-Forwarded-For", "203.0.113.7"), ("Forwarded", "for=203.0.113.7")],
            &[("X-Forwarded-For", "198.51.100.9"), ("Forwarded", "for=198.51.100.9")],
        ],
    },
    Circumstance {
        what: "by another program",
        headers: [&[("User-Agent", "retry-before/1.0")], &[("User-Agent", "retry-after/2.0")]],
    },
];

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        for circumstance in CIRCUMSTANCES {
            look_at(examiner, log, circumstance, &mut findings).await?;
        }
        Ok(findings.verdict())
    })
}

async fn look_at(
    examiner: &Examiner,
    log: &ProbeLog,
    circumstance: &Circumstance,
    findings: &mut ProbeFindings,
) -> Result<(), ProbeInterruption> {
    let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
        findings.unclear(NO_SUCCESS);
        return Ok(());
    };
    // Every request has a connection of its own.
    let early = examiner.ask_until_settled(log, "retry as it was", &first.request).await;
    let mut retries = Vec::new();
    for headers in circumstance.headers {
        let mut request = first.request.clone();
        for (name, value) in headers {
            request.headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
            request = request.with_header(name, value);
        }
        let label = format!("retry {}", circumstance.what);
        retries.push(examiner.ask_until_settled(log, &label, &request).await);
    }
    let effects = examiner.effects(log, &first.request.marker).await?;
    let mut all = vec![&first.exchange, &early];
    all.extend(&retries);
    let mut defects = judge_duplicates(examiner, &all, effects);
    let is_sane = defects.is_empty();
    for retry in &retries {
        let (Some(earlier), Some(later)) = (early.answer(), retry.answer()) else {
            findings.unclear("a retry was not answered");
            continue;
        };
        if is_sane {
            let (before, after) = ((&early, earlier), (retry, later));
            let what = circumstance.what;
            defects.extend(judge_later_retry(examiner, &first.answer, before, after, what));
        }
    }
    for defect in &mut defects {
        defect.sentence = format!("{}, when it was retried {}", defect.sentence, circumstance.what);
    }
    findings.seen(defects);
    Ok(())
}
