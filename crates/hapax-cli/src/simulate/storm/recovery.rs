//! A service that stood still has to work off what piled up, while callers retry.

use std::time::Duration;

use hapax::retry::{Backoff, BreakerOptions, Jitter, Schedule, Terms};
use hapax_cli::plot::{Axis, Plot, Point, Scale, Series};

use super::{
    super::{SimulateError, chance::Chance},
    dependency::{FaultKind, InjectedFault, Strength},
    layer::{Care, Deadlines, Pile, Retries},
    ms,
    tally::{StormTally, TallySlot},
    world::StormWorld,
};
use crate::{report::Section, table::grouped};

const SECONDS: u32 = 120;
const REQUESTS_PER_SECOND: u32 = 400;
const SLOT: Duration = ms(1000);
const STALL: InjectedFault =
    InjectedFault { kind: FaultKind::Stalls, from: ms(10_000), until: ms(20_000) };
const STALL_ENDS_SLOT: usize = 20;
/// It is well when this many seconds in a row are.
const WELL_SLOTS: usize = 5;

pub(super) fn run(attempts: u32, seed: u64) -> Result<Section, SimulateError> {
    let backoff = Backoff { jitter: Jitter::Full, base: ms(100), cap: ms(20_000) };
    let schedule = Schedule::new(backoff, attempts)?;
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (number, (name, care)) in (0..).zip(ways_to_retry()) {
        let tally = stall(care, schedule, Chance::new(seed, number))?;
        let recovered =
            recovered_after(&tally).map_or_else(|| "never".to_owned(), |s| format!("{s} s"));
        rows.push(vec![
            name.to_owned(),
            recovered,
            grouped(tally.failed() as f64),
            format!("{:.2}", tally.amplification()),
            grouped(f64::from(tally.peak())),
        ]);
        let points = (0..).zip(tally.slots()).take(SECONDS as usize);
        let points = points.map(|(at, slot)| Point::exact(f64::from(at), f64::from(slot.well)));
        series.push(Series { name: name.to_owned(), points: points.collect() });
    }
    Ok(Section {
        title: "Recovery: a service that stood still for ten seconds",
        header: vec![
            "",
            "well again after",
            "requests that failed",
            "calls/request",
            "most calls/s",
        ],
        rows,
        notes: vec![format!(
            "{REQUESTS_PER_SECOND} requests/s for {SECONDS} s; it serves 500/s, lets 2,500 wait, \
             and callers wait for 1 s"
        )],
        chart: Plot {
            title: "Requests that were answered well, by the second they began in".to_owned(),
            x: Axis { name: "seconds; it stands still from 10 to 20", scale: Scale::Linear },
            y: Axis { name: "per second", scale: Scale::Linear },
            series,
        }
        .draw(),
    })
}

fn ways_to_retry() -> [(&'static str, Care); 7] {
    let budget = Some(Terms::default());
    let breaker = Some(BreakerOptions::default());
    let deadlines = Deadlines::Shrinking;
    let all = Care { budget, breaker, deadlines, ..Care::NONE };
    [
        ("no retries", Care { retries: Retries::Nobody, ..Care::NONE }),
        ("retries", Care::NONE),
        ("with a budget", Care { budget, ..Care::NONE }),
        ("with a breaker", Care { breaker, ..Care::NONE }),
        ("with both", Care { budget, breaker, ..Care::NONE }),
        ("with deadlines sent", Care { deadlines, ..Care::NONE }),
        ("with all of these", all),
    ]
}

fn stall(care: Care, schedule: Schedule, mut chance: Chance) -> Result<StormTally, SimulateError> {
    let strength = Strength { workers: 1, service: ms(2), waiting_max: 2500, fault: STALL };
    let gap = Duration::from_secs(1) / REQUESTS_PER_SECOND;
    let requests = SECONDS * REQUESTS_PER_SECOND;
    let times: Vec<_> = (0..requests).map(|at| gap * at + chance.up_to(gap)).collect();
    let pile = Pile::new(1, care, schedule)?;
    Ok(StormWorld::new(pile, strength, chance, SLOT).run(&times))
}

/// Seconds from the end of the fault until requests are answered as before.
fn recovered_after(tally: &StormTally) -> Option<usize> {
    let is_well = |slot: &TallySlot| slot.well * 100 >= slot.requests * 99;
    let slots = &tally.slots()[..tally.slots().len().min(SECONDS as usize)];
    let after = slots.get(STALL_ENDS_SLOT..)?;
    after.windows(WELL_SLOTS).position(|slots| slots.iter().all(is_well))
}
