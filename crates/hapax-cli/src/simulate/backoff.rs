//! Clients that contend for one record: how pauses decide how much work that is.
//!
//! Each client reads the record's version and writes on top of it. A write over a version that is
//! no longer there is refused, and its client reads again after a pause.

use std::time::Duration;

use hapax::{
    limits::RETRY_ATTEMPTS_MAX,
    retry::{Backoff, InvalidSchedule, Jitter, Schedule},
};
use hapax_cli::plot::{Axis, Plot, Point, Scale, Series};

use super::{SimulateError, chance::Chance, event_queue::EventQueue};
use crate::{
    args::BackoffArgs,
    report::{ChartedReport, Section},
    table::grouped,
};

const NET_MEAN: Duration = Duration::from_millis(10);
const NET_DEVIATION: Duration = Duration::from_millis(2);

const WAYS: [(&str, Option<Jitter>); 5] = [
    ("none", None),
    ("exponential", Some(Jitter::None)),
    ("equal jitter", Some(Jitter::Equal)),
    ("full jitter", Some(Jitter::Full)),
    ("decorrelated", Some(Jitter::Decorrelated)),
];

/// The mean of some runs.
#[derive(Clone, Copy)]
struct MeanWork {
    calls: f64,
    millis: f64,
}

pub(super) fn run(args: &BackoffArgs) -> Result<ChartedReport, SimulateError> {
    let mut rows = Vec::new();
    for &clients in &args.clients {
        let mut row = Vec::new();
        for (_, jitter) in WAYS {
            row.push(mean(args, clients, schedule(args, jitter)?));
        }
        rows.push((clients, row));
    }
    let subject = format!(
        "base {} ms, cap {} ms, network 10 ms +- 2 ms, mean of {} runs, seed {}",
        args.base, args.cap, args.runs, args.output.seed
    );
    let sections = vec![
        section("Calls until every client has won once", "calls", &rows, |work| work.calls),
        section("Milliseconds until the last client has won", "ms", &rows, |work| work.millis),
    ];
    Ok(ChartedReport { title: "Pauses under contention", subject, sections })
}

fn schedule(
    args: &BackoffArgs,
    jitter: Option<Jitter>,
) -> Result<Option<Schedule>, InvalidSchedule> {
    let (base, cap) = (Duration::from_millis(args.base), Duration::from_millis(args.cap));
    let new = |jitter| Schedule::new(Backoff { jitter, base, cap }, RETRY_ATTEMPTS_MAX);
    jitter.map(new).transpose()
}

fn section(
    title: &'static str,
    unit: &'static str,
    rows: &[(u32, Vec<MeanWork>)],
    figure: fn(MeanWork) -> f64,
) -> Section {
    let cells = |(clients, row): &(u32, Vec<MeanWork>)| {
        let figures = row.iter().map(|work| grouped(figure(*work)));
        std::iter::once(clients.to_string()).chain(figures).collect()
    };
    let series = WAYS.iter().enumerate().map(|(at, (name, _))| {
        let points =
            rows.iter().map(|(clients, row)| Point::exact(f64::from(*clients), figure(row[at])));
        Series { name: (*name).to_owned(), points: points.collect() }
    });
    Section {
        title,
        header: std::iter::once("clients").chain(WAYS.map(|(name, _)| name)).collect(),
        rows: rows.iter().map(cells).collect(),
        notes: Vec::new(),
        chart: Plot {
            title: title.to_owned(),
            x: Axis { name: "clients", scale: Scale::Linear },
            y: Axis { name: unit, scale: Scale::Log },
            series: series.collect(),
        }
        .draw(),
    }
}

fn mean(args: &BackoffArgs, clients: u32, schedule: Option<Schedule>) -> MeanWork {
    let (mut calls, mut time) = (0, Duration::ZERO);
    for run in 0..args.runs {
        let (run_calls, run_time) =
            contend(clients, schedule, Chance::new(args.output.seed, u64::from(run)));
        calls += run_calls;
        time += run_time;
    }
    let runs = f64::from(args.runs);
    MeanWork { calls: calls as f64 / runs, millis: time.as_secs_f64() * 1000.0 / runs }
}

enum BackoffEvent {
    /// A client's question for the version arrives at the record.
    Read { client: usize },
    /// A client's write arrives at the record.
    Write { client: usize, version: u64 },
}

#[derive(Clone, Copy, Default)]
struct BackoffClient {
    failures: u32,
    pause: Duration,
}

/// One run: how many writes were tried, and when the last client knew that it had won.
fn contend(clients: u32, schedule: Option<Schedule>, mut chance: Chance) -> (u64, Duration) {
    let net = |chance: &mut Chance| chance.about(NET_MEAN, NET_DEVIATION);
    let mut events = EventQueue::new();
    let mut states: Vec<_> = (0..clients).map(|_| BackoffClient::default()).collect();
    for client in 0..states.len() {
        events.plan(net(&mut chance), BackoffEvent::Read { client });
    }
    let (mut current, mut calls, mut end) = (0, 0, Duration::ZERO);
    while let Some((now, event)) = events.next() {
        match event {
            BackoffEvent::Read { client } => {
                let there_and_back = net(&mut chance) + net(&mut chance);
                events.plan(now + there_and_back, BackoffEvent::Write { client, version: current });
            }
            BackoffEvent::Write { version, .. } if version == current => {
                calls += 1;
                current += 1;
                end = end.max(now + net(&mut chance));
            }
            BackoffEvent::Write { client, .. } => {
                calls += 1;
                let state = &mut states[client];
                state.failures += 1;
                state.pause = pause(schedule, *state, chance.number());
                let told_and_asked = net(&mut chance) + net(&mut chance);
                events.plan(now + told_and_asked + state.pause, BackoffEvent::Read { client });
            }
        }
    }
    (calls, end)
}

/// The first pause is drawn from the doubled base, as in the simulation this one is compared with.
fn pause(schedule: Option<Schedule>, client: BackoffClient, random: u64) -> Duration {
    let pause = |schedule: Schedule| schedule.pause(client.failures + 1, client.pause, random);
    schedule.and_then(pause).unwrap_or_default()
}
