//! A service fails below layers of services that retry.

use std::time::Duration;

use hapax::retry::{Backoff, BreakerOptions, Jitter, Schedule, Terms};
use hapax_cli::plot::{Bar, BarLook, BarRow, Bars};

use super::{
    super::{SimulateError, chance::Chance},
    dependency::{FaultKind, InjectedFault, Strength},
    layer::{Care, Deadlines, Pile, Retries},
    ms,
    tally::StormTally,
    world::StormWorld,
};
use crate::{
    report::Section,
    table::{grouped, number},
};

const REQUESTS: u32 = 2000;
const REQUESTS_PER_SECOND: u32 = 200;

pub(super) fn run(layers: u32, attempts: u32, seed: u64) -> Result<Section, SimulateError> {
    let backoff = Backoff { jitter: Jitter::Full, base: ms(10), cap: ms(1000) };
    let schedule = Schedule::new(backoff, attempts)?;
    let (mut rows, mut ways) = (Vec::new(), Vec::new());
    for (number, (name, care)) in (0..).zip(ways_to_retry()) {
        let suffer = |kind| {
            let pile = Pile::new(layers, care, schedule)?;
            Ok::<_, SimulateError>(outage(pile, kind, Chance::new(seed, number)))
        };
        let (refused, hung) = (suffer(FaultKind::Refuses)?, suffer(FaultKind::Hangs)?);
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", refused.amplification()),
            format!("{:.2}", hung.amplification()),
            grouped(hung.late as f64),
        ]);
        let bars = [refused.amplification(), hung.amplification()].into_iter().enumerate();
        let bars = bars.map(|(at, value)| bar(at, value)).collect();
        ways.push(BarRow { name: name.to_owned(), bars });
    }
    Ok(Section {
        title: "An outage below layers that retry",
        header: vec!["", "calls/request, refused", "calls/request, hanging", "of them too late"],
        rows,
        notes: vec![format!(
            "{} requests at {REQUESTS_PER_SECOND}/s; what fails refuses at once, or never answers",
            grouped(f64::from(REQUESTS))
        )],
        chart: Bars {
            title: "Calls that reach the failed service, for each request".to_owned(),
            description: described(&ways),
            unit: "",
            from: None,
            legend: LEGEND.to_vec(),
            rows: ways,
        }
        .draw(),
    })
}

const LEGEND: [&str; 2] = ["it refuses", "it hangs"];

fn bar(at: usize, value: f64) -> Bar {
    Bar { value, range: None, bound: None, look: BarLook::Numbered(at) }
}

fn described(ways: &[BarRow]) -> String {
    let ways = ways.iter().map(|way| {
        let bars = LEGEND.iter().zip(&way.bars);
        let bars = bars.map(|(name, bar)| format!("{name} {}", number(bar.value)));
        format!("{}: {}", way.name, bars.collect::<Vec<_>>().join(", "))
    });
    ways.collect::<Vec<_>>().join("; ")
}

fn ways_to_retry() -> [(&'static str, Care); 7] {
    let budget = Some(Terms::default());
    let breaker = Some(BreakerOptions::default());
    let (one, shrinking) = (Retries::FirstLayer, Deadlines::Shrinking);
    let all = Care { retries: one, budget, breaker, deadlines: shrinking };
    [
        ("every layer retries", Care::NONE),
        ("shrinking deadlines", Care { deadlines: shrinking, ..Care::NONE }),
        ("one layer retries", Care { retries: one, ..Care::NONE }),
        ("a budget in every layer", Care { budget, ..Care::NONE }),
        ("one layer, with a budget", Care { retries: one, budget, ..Care::NONE }),
        ("a breaker in every layer", Care { breaker, ..Care::NONE }),
        ("all of these", all),
    ]
}

fn outage(pile: Pile, kind: FaultKind, mut chance: Chance) -> StormTally {
    let fault = InjectedFault { kind, from: Duration::ZERO, until: Duration::from_secs(3600) };
    let strength = Strength { workers: 1, service: ms(1), waiting_max: 0, fault };
    let gap = Duration::from_secs(1) / REQUESTS_PER_SECOND;
    let times: Vec<_> = (0..REQUESTS).map(|at| gap * at + chance.up_to(gap)).collect();
    StormWorld::new(pile, strength, chance, ms(1000)).run(&times)
}
