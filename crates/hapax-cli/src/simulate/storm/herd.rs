//! Clients that all lose their server at the same moment.

use std::time::Duration;

use hapax::retry::{Backoff, Jitter, Schedule};
use hapax_cli::plot::{Axis, Plot, Point, Scale, Series};

use super::{
    super::{SimulateError, chance::Chance},
    dependency::{FaultKind, InjectedFault, Strength},
    layer::{Care, Pile},
    ms,
    tally::StormTally,
    world::StormWorld,
};
use crate::{report::Section, table::grouped};

const CLIENTS: u32 = 1000;
const DOWN_FOR: Duration = ms(500);
const SLOT: Duration = ms(10);
/// What the plot shows.
const SHOWN_SLOTS: usize = 400;

const WAYS: [(&str, Jitter); 4] = [
    ("no jitter", Jitter::None),
    ("equal jitter", Jitter::Equal),
    ("full jitter", Jitter::Full),
    ("decorrelated jitter", Jitter::Decorrelated),
];

pub(super) fn run(seed: u64) -> Result<Section, SimulateError> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (number, (name, jitter)) in (0..).zip(WAYS) {
        let backoff = Backoff { jitter, base: ms(100), cap: ms(5000) };
        let tally = herd(Schedule::new(backoff, 100)?, Chance::new(seed, number))?;
        let peak = tally.slots().iter().skip(1).map(|slot| slot.calls).max().unwrap_or(0);
        rows.push(vec![
            name.to_owned(),
            grouped(f64::from(peak)),
            grouped(tally.calls() as f64),
            grouped(tally.refused as f64),
            grouped(tally.failed() as f64),
            grouped(tally.last_answer.as_secs_f64() * 1000.0),
        ]);
        series.push(Series { name: name.to_owned(), points: shown(&tally) });
    }
    Ok(Section {
        title: "A herd: every client loses its server at once",
        header: vec![
            "",
            "calls in the busiest 10 ms",
            "calls",
            "refused",
            "clients that gave up",
            "the last is served after, ms",
        ],
        rows,
        notes: vec![format!(
            "{} clients; the server is gone for {} ms, then serves 1,000/s and lets 50 wait",
            grouped(f64::from(CLIENTS)),
            DOWN_FOR.as_millis()
        )],
        chart: Plot {
            title: "Calls that reach the server, after the first".to_owned(),
            x: Axis { name: "ms since the clients lost it", scale: Scale::Linear },
            y: Axis { name: "in 10 ms", scale: Scale::Linear },
            series,
        }
        .draw(),
    })
}

/// Calls by slot, without the first: until then all clients are alike.
fn shown(tally: &StormTally) -> Vec<Point> {
    let slots = (0..).zip(tally.slots()).take(SHOWN_SLOTS).skip(1);
    slots.map(|(at, slot)| Point::exact(f64::from(at) * 10.0, f64::from(slot.calls))).collect()
}

fn herd(schedule: Schedule, mut chance: Chance) -> Result<StormTally, SimulateError> {
    let fault = InjectedFault { kind: FaultKind::Refuses, from: Duration::ZERO, until: DOWN_FOR };
    let strength = Strength { workers: 10, service: ms(10), waiting_max: 50, fault };
    let times: Vec<_> = (0..CLIENTS).map(|_| chance.up_to(SLOT)).collect();
    let pile = Pile::new(1, Care::NONE, schedule)?;
    Ok(StormWorld::new(pile, strength, chance, SLOT).run(&times))
}
