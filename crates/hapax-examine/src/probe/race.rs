//! V02: duplicates whose last bytes leave together.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, judge_overlapping, judge_settled},
    recovery::Slowable,
    wire::RacedExchanges,
};

pub(super) const PROBE: Probe = Probe {
    id: "V02",
    name: "race",
    question: "Do duplicates that come at once have one effect?",
    needs: &[],
    operations_max: 0,
    run: |examiner, log| run(examiner, log),
};

/// How often in a row a race is tried in which too few duplicates were with the server at once.
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

/// All races of one probe.
struct RaceSeries<'a> {
    examiner: &'a Examiner,
    log: &'a ProbeLog,
    route: RaceRoute,
    findings: TrialFindings,
    sizes: Vec<RaceSize>,
    server: Slowable<'a>,
}

/// What came of the races with one number of duplicates.
#[derive(Debug, Clone, Copy)]
struct RaceSize {
    duplicates: usize,
    /// Races that count: at least half of the duplicates had been sent before the first success was heard.
    races: u32,
    /// How many of them had been, at least, in each race that counts.
    together_min: usize,
    /// How many of them had been, at most, in any race.
    together_max: usize,
}

/// What one race showed.
struct RaceTrial {
    defects: Vec<Defect>,
    together: usize,
    has_success: bool,
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
    let (findings, server) = (TrialFindings::default(), Slowable::new(examiner));
    let mut series = RaceSeries { examiner, log, route, findings, sizes: Vec::new(), server };
    let raced = series.run(racers).await;
    let RaceSeries { findings, sizes, server, .. } = series;
    let verdict = verdict(findings, &sizes, server.wanted());
    server.restore().await?;
    raced.map(|()| verdict)
}

impl RaceSeries<'_> {
    async fn run(&mut self, racers: &[usize]) -> Result<(), ProbeInterruption> {
        for number in racers {
            let mut size = RaceSize::none_of(*number);
            let raced = self.race_size(&mut size).await;
            self.sizes.push(size);
            self.log.reached(self.reach());
            raced?;
            if self.findings.is_decided() {
                break;
            }
        }
        Ok(())
    }

    /// As many operations as there may be trials, whether they come to one or not.
    async fn race_size(&mut self, size: &mut RaceSize) -> Result<(), ProbeInterruption> {
        let mut missed = 0;
        for number in 0..self.examiner.examination().bounds.race_trials {
            let mark = self.log.mark();
            let trial = self.trial(size.duplicates, number).await?;
            size.together_max = size.together_max.max(trial.together);
            let is_reached = trial.has_success && size.is_reached_by(trial.together);
            if !is_reached && trial.defects.is_empty() {
                missed += 1;
                if missed == ATTEMPTS_MAX && !self.server.slow_down(self.log).await? {
                    return Ok(());
                }
                continue;
            }
            missed = 0;
            if is_reached {
                size.count(trial.together);
            }
            if self.findings.add(trial.defects) == 0 && number > 0 {
                self.log.forget_since(mark);
            }
            if self.findings.is_decided() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One race of a fresh operation.
    async fn trial(&self, racers: usize, number: u32) -> Result<RaceTrial, ProbeInterruption> {
        let Self { examiner, log, route, .. } = self;
        let request = examiner.fresh()?;
        let mut order: Vec<_> = (0..racers).collect();
        examiner.chance(&format!("{route:?} {racers} {number}")).shuffle(&mut order);
        let raced = race(examiner, log, *route, &request, &order).await;
        let mut last = vec![examiner.ask_until_settled(log, "afterwards", &request).await];
        if *route == RaceRoute::Addresses {
            let elsewhere = examiner.addressed(examiner.api().addresses.len() - 1, &request);
            let patience = examiner.patience();
            last.push(examiner.wire().ask_at(log, "elsewhere", elsewhere, patience).await);
        }
        let effects = examiner.effects(log, &request.marker).await?;
        let all: Vec<_> = raced.exchanges.iter().chain(&last).collect();
        let mut defects = judge_overlapping(examiner, &all, effects);
        let has_success = all.iter().any(|exchange| exchange.succeeded());
        if let Some(stuck) = last.first().filter(|_| !has_success) {
            let after = format!("{racers} duplicates came at once");
            defects.extend(
                judge_settled(examiner, &after, stuck)
                    .filter(|defect| defect.class == DefectClass::Liveness),
            );
        }
        Ok(RaceTrial { defects, together: raced.together, has_success })
    }

    /// How many came at once, and how that is known.
    fn reach(&self) -> String {
        let sizes: Vec<_> = self.sizes.iter().map(RaceSize::describe).collect();
        let how = match self.route {
            RaceRoute::Connections | RaceRoute::Addresses => {
                "sent before the first success was heard"
            }
            RaceRoute::Streams => "sent in one write",
        };
        format!("{}: {how}", sizes.join(", "))
    }
}

/// Nothing is told of a number of duplicates that never met; this would help.
fn verdict(findings: TrialFindings, sizes: &[RaceSize], wanted: &str) -> ProbeVerdict {
    let missed: Vec<_> = sizes.iter().filter(|size| size.races == 0).collect();
    if !findings.is_sound() || missed.is_empty() {
        return findings.verdict("there was no race");
    }
    let text = |size: &&RaceSize| match size.together_max {
        0 => format!("{} duplicates", size.duplicates),
        most => format!("{} duplicates (no more than {most} of them)", size.duplicates),
    };
    let missed: Vec<_> = missed.iter().map(text).collect();
    let held = sizes.iter().filter(|size| size.races > 0);
    let held: Vec<_> = held.map(|size| size.duplicates.to_string()).collect();
    let held = match held.as_slice() {
        [] => String::new(),
        held => format!(", while nothing was wrong with {}", held.join(" and ")),
    };
    ProbeVerdict::inconclusive(format!(
        "{} were never with the API at once, or none of them had success{held}: {wanted} would help",
        missed.join(" and ")
    ))
}

impl RaceSize {
    fn none_of(duplicates: usize) -> Self {
        Self { duplicates, races: 0, together_min: duplicates, together_max: 0 }
    }

    /// Whether a race in which so many were sent in time is one of this number.
    fn is_reached_by(&self, together: usize) -> bool {
        together >= self.duplicates.div_ceil(2).max(2)
    }

    /// One more race that counts.
    fn count(&mut self, together: usize) {
        self.together_min = self.together_min.min(together);
        self.races += 1;
    }

    /// `10 races of 8 duplicates`, and how many of them came in time if that were not always all.
    fn describe(&self) -> String {
        let races = if self.races == 1 { "race" } else { "races" };
        let all = format!("{} {races} of {} duplicates", self.races, self.duplicates);
        if self.races > 0 && self.together_min < self.duplicates {
            format!("{all} (at least {} of them)", self.together_min)
        } else {
            all
        }
    }
}

/// Duplicates of this operation at once, as many as there are places in this order.
pub(super) async fn race(
    examiner: &Examiner,
    log: &ProbeLog,
    route: RaceRoute,
    request: &ExamRequest,
    order: &[usize],
) -> RacedExchanges {
    let addresses = match route {
        RaceRoute::Connections | RaceRoute::Streams => 1,
        RaceRoute::Addresses => examiner.api().addresses.len(),
    };
    let racers = 0..order.len();
    let addressed: Vec<_> =
        racers.map(|racer| examiner.addressed(racer % addresses.max(1), request)).collect();
    let (wire, patience) = (examiner.wire(), examiner.patience());
    match route {
        RaceRoute::Connections | RaceRoute::Addresses => {
            wire.race(log, &addressed, order, patience).await
        }
        RaceRoute::Streams => wire.race_http2(log, &addressed, order, patience).await,
    }
}
