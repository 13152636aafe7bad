//! What asking the retry budget and the breaker costs.

use std::{hint::black_box, sync::Barrier, thread, time::Duration};

use hapax::retry::{Breaker, Budget, Cost, Health, Terms};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{error::CallBenchError, plan::ClientPlan, stopwatch::Stopwatch};
use crate::{
    BenchError,
    figures::{BoundedFigure, Columns, FigureTarget, MeasuredSpread, SampleColumn, header, row},
    load::float,
    progress::BenchProgress,
    report::ReportSection,
};

pub(super) const STEPS: u64 = 1;

const THREADS: u32 = 2;
/// A check is over before a clock has moved, so each sample is many of them.
const CHECKS_PER_CALL: u64 = 20;

/// Something that is asked for every call, or before a retry.
struct CallCheck {
    name: &'static str,
    make: fn() -> Result<CheckedQuestion, CallBenchError>,
}

const CHECKS: [CallCheck; 4] = [
    CallCheck {
        name: "budget: a call begins",
        make: || Ok(CheckedQuestion::Begin(Budget::default())),
    },
    CallCheck {
        name: "budget: a retry is paid for",
        make: || Ok(CheckedQuestion::Withdraw(Budget::default())),
    },
    CallCheck {
        name: "budget of tokens: a call succeeded",
        make: || Ok(CheckedQuestion::Succeed(Budget::new(Terms::COSTS)?)),
    },
    CallCheck {
        name: "breaker: a call is let through and reported",
        make: || Ok(CheckedQuestion::Pass(Breaker::default())),
    },
];

enum CheckedQuestion {
    Begin(Budget),
    Withdraw(Budget),
    Succeed(Budget),
    Pass(Breaker),
}

impl CheckedQuestion {
    /// Asks for the check with this number; time passes as if there were a million calls a second.
    fn ask(&self, number: u64) {
        let now = Duration::from_micros(number);
        match self {
            Self::Begin(budget) => budget.begin(),
            Self::Withdraw(budget) => drop(black_box(budget.withdraw(now, Cost::Failure))),
            Self::Succeed(budget) => budget.succeed(None),
            Self::Pass(breaker) => {
                if let Ok(pass) = black_box(breaker.admit(now, number)) {
                    breaker.report(now, pass, Health::Good);
                }
            }
        }
    }
}

/// What one round showed, in nanoseconds.
struct RoundSample {
    one_thread: f64,
    two_threads: f64,
}

/// Measures in turn, round after round.
pub(super) fn run(
    plan: &ClientPlan,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    progress.begin("checks")?;
    let checks = plan.repetitions * CHECKS_PER_CALL;
    let mut samples: [Vec<RoundSample>; CHECKS.len()] = Default::default();
    for _ in 0..plan.rounds {
        for (check, samples) in CHECKS.iter().zip(&mut samples) {
            let one_thread = by_one(&(check.make)()?, checks)?;
            samples.push(RoundSample { one_thread, two_threads: by_two(&(check.make)()?, checks) });
        }
    }
    progress.inc(1);
    let rows = CHECKS.iter().zip(&samples);
    let data = rows.clone().map(|(check, samples)| {
        let both = samples.iter().map(|sample| json!([sample.one_thread, sample.two_threads]));
        (check.name.to_owned(), both.collect())
    });
    let data: Map<String, Value> = data.collect();
    let claims = rows.clone().filter_map(|(check, samples)| {
        let measured = MeasuredSpread::of(samples.iter().map(|sample| sample.one_thread))?;
        let what = format!("{}, uncontended", check.name);
        Some(BoundedFigure {
            what,
            measured,
            unit: " ns",
            target: Some(FigureTarget::AtMost(100.0)),
        })
    });
    Ok(ReportSection {
        title: "Checks".to_owned(),
        header: header(COLUMNS),
        rows: rows.clone().map(|(check, samples)| row(check.name, samples, COLUMNS)).collect(),
        claims: claims.collect(),
        invalid: Vec::new(),
        plots: Vec::new(),
        data: json!({ "nanoseconds_by_one_and_two_threads": data }),
    })
}

fn by_one(asked: &CheckedQuestion, checks: u64) -> Result<f64, CallBenchError> {
    let watch = Stopwatch::start()?;
    for number in 0..checks {
        asked.ask(number);
    }
    watch.nanos_for_each(checks)
}

/// How long a check takes whoever asks while another thread does nothing else; by the clock, since
/// waiting for each other takes no CPU time.
fn by_two(asked: &CheckedQuestion, checks: u64) -> f64 {
    let together = Barrier::new(2);
    let ask = || {
        together.wait();
        let began = Instant::now();
        for number in 0..checks {
            asked.ask(number);
        }
        began.elapsed()
    };
    let elapsed: Duration = thread::scope(|scope| {
        let other = scope.spawn(ask);
        let own = ask();
        own + other.join().unwrap_or_default()
    });
    (elapsed / THREADS).as_secs_f64() * 1e9 / float(checks.max(1))
}

const COLUMNS: &Columns<RoundSample> = &[
    ("1 thread, CPU ns", SampleColumn::Median(|sample| Some(sample.one_thread))),
    ("range", SampleColumn::Range(|sample| Some(sample.one_thread))),
    ("2 threads, ns", SampleColumn::Median(|sample| Some(sample.two_threads))),
    ("range", SampleColumn::Range(|sample| Some(sample.two_threads))),
];
