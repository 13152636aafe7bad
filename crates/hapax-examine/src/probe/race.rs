//! V02: duplicates whose last bytes leave together.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    ExamRequest, Examiner, Exchange, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, is_overlap, judge_overlapping, judge_settled},
};

pub(super) const PROBE: Probe = Probe {
    id: "V02",
    name: "race",
    question: "Do duplicates that come at once have one effect?",
    needs: &[],
    operations_max: 0,
    run: |examiner, log| run(examiner, log),
};

/// How often a trial is tried in which no two duplicates were with the server at once.
const ATTEMPTS_MAX: u32 = 3;

/// Most duplicates that come at once where few of them do.
const FEW_MAX: usize = 8;

/// Which way duplicates take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RaceRoute {
    /// A connection each.
    Connections,
    /// A stream each, of one HTTP/2 connection.
    Streams,
    /// A connection each, to the addresses in turn.
    Addresses,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let racers = &examiner.examination().bounds.racers;
        race_all(examiner, log, RaceRoute::Connections, racers).await
    })
}

/// The same with few duplicates: more of them show no more, as one is enough to be the second.
pub(super) async fn race_few(
    examiner: &Examiner,
    log: &ProbeLog,
    route: RaceRoute,
) -> Result<ProbeVerdict, ProbeInterruption> {
    let bounds = &examiner.examination().bounds;
    let mut racers: Vec<_> = bounds.racers.iter().map(|one| FEW_MAX.min(*one)).collect();
    racers.dedup();
    race_all(examiner, log, route, &racers).await
}

/// So many trials for each number of racers, up to one that shows the worst.
async fn race_all(
    examiner: &Examiner,
    log: &ProbeLog,
    route: RaceRoute,
    racers: &[usize],
) -> Result<ProbeVerdict, ProbeInterruption> {
    let mut findings = TrialFindings::default();
    for number in racers {
        for trial in 0..examiner.examination().bounds.race_trials {
            let mark = log.mark();
            let Some(defects) = trial_of(examiner, log, route, *number).await? else { break };
            if findings.add(defects) == 0 && trial > 0 {
                log.forget_since(mark);
            }
            if findings.is_decided() {
                return Ok(findings.verdict(""));
            }
        }
    }
    Ok(findings.verdict(
        "no two duplicates were with the API at once, or none had success: a slower operation would help",
    ))
}

/// One race of a fresh operation; nothing if none came about.
async fn trial_of(
    examiner: &Examiner,
    log: &ProbeLog,
    route: RaceRoute,
    racers: usize,
) -> Result<Option<Vec<crate::Defect>>, ProbeInterruption> {
    for _ in 0..ATTEMPTS_MAX {
        let request = examiner.fresh()?;
        let raced = race(examiner, log, route, &request, racers).await;
        let mut last = vec![examiner.ask_until_settled(log, "afterwards", &request).await];
        if route == RaceRoute::Addresses {
            let elsewhere = examiner.addressed(examiner.api().addresses.len() - 1, &request);
            let patience = examiner.patience();
            last.push(examiner.wire().ask_at(log, "elsewhere", elsewhere, patience).await);
        }
        let effects = examiner.effects(log, &request.marker).await?;
        let duplicates: Vec<_> = raced.iter().collect();
        let all: Vec<_> = raced.iter().chain(&last).collect();
        let mut defects = judge_overlapping(examiner, &all, effects);
        let is_success = all.iter().any(|exchange| exchange.succeeded());
        if let Some(stuck) = last.first().filter(|_| !is_success) {
            let after = format!("{racers} duplicates came at once");
            defects.extend(
                judge_settled(examiner, &after, stuck)
                    .filter(|defect| defect.class == crate::DefectClass::Liveness),
            );
        }
        if !defects.is_empty() || (is_success && is_overlap(&duplicates)) {
            return Ok(Some(defects));
        }
    }
    Ok(None)
}

/// Duplicates of this operation, at once.
pub(super) async fn race(
    examiner: &Examiner,
    log: &ProbeLog,
    route: RaceRoute,
    request: &ExamRequest,
    racers: usize,
) -> Vec<Exchange> {
    let addresses = match route {
        RaceRoute::Connections | RaceRoute::Streams => 1,
        RaceRoute::Addresses => examiner.api().addresses.len(),
    };
    let addressed: Vec<_> =
        (0..racers).map(|racer| examiner.addressed(racer % addresses.max(1), request)).collect();
    match route {
        RaceRoute::Connections | RaceRoute::Addresses => {
            examiner.wire().race(log, &addressed, examiner.patience()).await
        }
        RaceRoute::Streams => {
            examiner.wire().race_http2(log, &addressed, examiner.patience()).await
        }
    }
}
