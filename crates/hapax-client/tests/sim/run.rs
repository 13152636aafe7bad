//! One seed, one run: trouble, then none, then the judgement.

use std::time::Duration;

use hapax_client::journal::{Journal, JournalOptions};
use turmoil::{Builder, Sim};

use super::{
    client,
    judge::{Failure, judge},
    plan::{Fault, Plan, TROUBLED_FOR, Variation},
    server,
    world::{Counts, World},
};

/// What came of one run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<Failure>,
    /// A digest of the history: the same seed gives the same.
    pub(crate) trace: u64,
    pub(crate) history: Vec<String>,
}

const TICK: Duration = Duration::from_millis(10);
/// How long clients may take to finish when nothing goes wrong any more.
const FINISHED_WITHIN: Duration = Duration::from_secs(240);
/// How long copies of requests may still be on their way.
const STRAGGLERS: Duration = Duration::from_secs(24);

/// Runs one seed.
pub(crate) fn run(seed: u64, variation: Variation) -> Report {
    let directory = tempfile::tempdir().unwrap();
    // All that draws without being given a source: pauses, and who is let through a breaker.
    fastrand::seed(seed);
    let world = World::new(Plan::new(seed, variation), directory.path().to_owned());
    let mut sim = start(&world);
    trouble(&mut sim, &world);
    heal(&mut sim, &world);
    let mut failures = Vec::new();
    if !finish(&mut sim, &world) {
        failures.push(Failure::Restless);
    }
    steps(&mut sim, STRAGGLERS);
    drop(sim);
    failures.extend(judge(&world, |group| {
        let options = JournalOptions { clock: world.clock(group), ..JournalOptions::default() };
        Journal::open_inline(world.journal_path(group), options).unwrap()
    }));
    Report {
        plan: world.plan().clone(),
        counts: world.counts(),
        failures,
        trace: world.trace(),
        history: world.history(),
    }
}

fn start(world: &World) -> Sim<'static> {
    let plan = world.plan();
    let mut sim = Builder::new()
        .rng_seed(plan.seed)
        .tick_duration(TICK)
        .max_message_latency(plan.latency_max)
        .fail_rate(plan.loss)
        .repair_rate(0.3)
        .build();
    let of_server = world.clone();
    sim.host(server::HOST, move || server::run(of_server.clone()));
    for number in 0..plan.clients {
        let world = world.clone();
        sim.host(name(number), move || client::run(world.clone(), number));
    }
    sim
}

fn name(client: usize) -> String {
    format!("client-{client}")
}

/// Things go wrong, each from its beginning to its end.
fn trouble(sim: &mut Sim<'_>, world: &World) {
    while sim.elapsed() < TROUBLED_FOR {
        let now = sim.elapsed();
        world.tell_time(now);
        let is_now = |at: Duration| at >= now && at < now + TICK;
        for episode in &world.plan().episodes {
            if is_now(episode.from) {
                world.note(&format!("{:?}", episode.fault));
                begin(sim, world, episode.fault);
            }
            if is_now(episode.until) {
                world.note(&format!("no more {:?}", episode.fault));
                end(sim, episode.fault);
            }
        }
        sim.step().unwrap();
    }
}

fn begin(sim: &mut Sim<'_>, world: &World, fault: Fault) {
    world.count(|counts| match fault {
        Fault::ClientDown(_) => counts.client_restarts += 1,
        Fault::ServerDown => counts.server_restarts += 1,
        Fault::ClockSet { .. } => counts.clocks_set += 1,
        Fault::Partition(_) | Fault::PartitionOut(_) | Fault::PartitionBack(_) | Fault::Hold(_) => {
            counts.network_faults += 1;
        }
    });
    match fault {
        Fault::Partition(client) => sim.partition(name(client), server::HOST),
        Fault::PartitionOut(client) => sim.partition_oneway(name(client), server::HOST),
        Fault::PartitionBack(client) => sim.partition_oneway(server::HOST, name(client)),
        Fault::Hold(client) => sim.hold(name(client), server::HOST),
        Fault::ClientDown(client) => sim.crash(name(client)),
        Fault::ServerDown => sim.crash(server::HOST),
        Fault::ClockSet { client, to } => world.set_clock(client, to),
    }
}

fn end(sim: &mut Sim<'_>, fault: Fault) {
    match fault {
        Fault::Partition(client) | Fault::PartitionOut(client) | Fault::PartitionBack(client) => {
            sim.repair(name(client), server::HOST);
        }
        Fault::Hold(client) => sim.release(name(client), server::HOST),
        Fault::ClientDown(client) => sim.bounce(name(client)),
        Fault::ServerDown => sim.bounce(server::HOST),
        // Nobody sets it right again.
        Fault::ClockSet { .. } => {}
    }
}

fn heal(sim: &mut Sim<'_>, world: &World) {
    world.note("healed");
    world.heal();
    sim.set_fail_rate(0.0);
    if !sim.is_host_running(server::HOST) {
        sim.bounce(server::HOST);
    }
    for client in (0..world.plan().clients).map(name) {
        sim.release(client.as_str(), server::HOST);
        sim.repair(client.as_str(), server::HOST);
        sim.bounce(client);
    }
}

/// Whether every client came to its end in time.
fn finish(sim: &mut Sim<'_>, world: &World) -> bool {
    let until = sim.elapsed() + FINISHED_WITHIN;
    while (0..world.plan().clients).any(|client| sim.is_host_running(name(client))) {
        if sim.elapsed() > until {
            return false;
        }
        sim.step().unwrap();
    }
    true
}

fn steps(sim: &mut Sim<'_>, span: Duration) {
    let until = sim.elapsed() + span;
    while sim.elapsed() < until {
        sim.step().unwrap();
    }
}
