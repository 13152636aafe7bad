//! Kills relays and consumers until enough have died, everywhere, while events are written.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::{self, Runtime},
    sync::watch,
    time::sleep,
};

use super::{
    check::{Violation, check},
    finish,
    hunt::Hunt,
    line::Line,
    log::Log,
    orders::{Broken, Orders, Role},
    state::State,
    strike,
    summary::Summary,
    world::World,
    writer::{Business, Told},
};
use crate::{drive::Fate, error::CrashError, finding::Finding};

/// How relays and consumers are killed.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The program that is a victim when started as `PROGRAM relay-victim` or `consumer-victim`.
    pub program: PathBuf,
    /// Whether the outbox is in SQLite; in PostgreSQL if not. The effects are always there.
    pub sqlite: bool,
    /// How many processes must die, half of them of each role; more do if nobody has died at some
    /// place yet, or not everything has befallen the servers.
    pub kills: usize,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How many lines there are, each with two relays and two consumers at a time.
    pub lines: usize,
    /// The places to die at; all of them if none is named.
    pub at: Vec<String>,
    /// For how long the broker is frozen; nothing befalls the servers if not given.
    pub frozen: Option<Duration>,
    /// What the victims do wrong, to see whether that is noticed.
    pub broken: Option<Broken>,
}

/// How often somebody has parked events sent again.
const REPLAY_EVERY: Duration = Duration::from_millis(300);

impl Drive {
    /// Every place a victim of this role can die at.
    pub fn places(&self, role: Role) -> Vec<&'static str> {
        let mut places = strike::places(role, self.sqlite);
        if !self.at.is_empty() {
            places.retain(|place| self.at.iter().any(|at| at == place));
        }
        places
    }

    /// Kills until enough have died, lets others finish, and checks. Tells `progress` now and then.
    pub fn run(&self, progress: &(dyn Fn(&Summary) + Sync)) -> Result<Summary, CrashError> {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(CrashError::io("start a runtime"))?;
        let mut world = runtime.block_on(World::start(self.sqlite, self.lines))?;
        let told = Arc::new(Told::default());
        let business = Business::at(&world.outbox, self.lines, Arc::clone(&told));
        let log = runtime.block_on(self.prepare(&world, &business))?;
        let (stop, stopped) = watch::channel(false);
        let writing = business.open(runtime.handle(), self.seed, &stopped);
        runtime.spawn(replay(log.clone(), self.lines, stopped));

        let state = Mutex::new(State::default());
        let (orders, logs) = (self.orders(&world), world.home.path().to_owned());
        let hunt = Hunt { drive: self, state: &state, orders: &orders, logs: &logs, progress };
        hunt.run(world.servers(), runtime.handle())?;
        // Who writes may have ended by itself, which is told here.
        let _ = stop.send(true);
        for writer in writing {
            runtime.block_on(writer).map_err(CrashError::refused("write events"))??;
        }
        let unfinished = self.finish(hunt, &runtime, &world, &log)?;

        let facts = runtime.block_on(finish::gather(self, &world, &business, &told))?;
        let (counts, found) = check(&facts);
        if !found.is_empty() {
            // What cannot be kept is a pity, and changes nothing about what was found.
            let _ = fs::write(logs.join("facts.log"), format!("{facts:#?}\n"));
        }
        runtime.shutdown_background();
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.summary.counts = counts;
        state.violations.extend(unfinished);
        state.violations.extend(found);
        Ok(self.conclude(state, world))
    }

    async fn prepare(&self, world: &World, business: &Business) -> Result<Log, CrashError> {
        business.prepare().await?;
        let log = Log::open(&world.outbox).await?;
        for line in (0..self.lines).map(Line) {
            log.register(line).await?;
        }
        Ok(log)
    }

    /// Lets victims that nobody strikes finish what is left.
    fn finish(
        &self,
        hunt: Hunt<'_>,
        runtime: &Runtime,
        world: &World,
        log: &Log,
    ) -> Result<Vec<Violation>, CrashError> {
        let last = hunt.last()?;
        let unfinished = runtime.block_on(finish::settle(self, world, log))?;
        let mut violations: Vec<_> =
            unfinished.into_iter().map(|what| Violation::Unfinished { what }).collect();
        for (role, mut victim) in last {
            victim.kill_after(Duration::ZERO)?;
            match victim.wait()? {
                Fate::Killed => {}
                Fate::Ended => {
                    let how = "it ended before its time".to_owned();
                    violations.push(Violation::Failed { role, how });
                }
                Fate::Failed(how) => violations.push(Violation::Failed { role, how }),
            }
        }
        Ok(violations)
    }

    fn orders(&self, world: &World) -> Orders {
        Orders {
            outbox: world.outbox.clone(),
            inbox: world.inbox.clone(),
            nats: world.nats.clone(),
            line: 0,
            work_ms: 0,
            die_at: None,
            choosy: false,
            clock_step_ms: 0,
            broken: self.broken,
        }
    }

    fn conclude(&self, state: State, mut world: World) -> Summary {
        let State { mut summary, violations, .. } = state;
        if !violations.is_empty() {
            world.home.disable_cleanup(true);
        }
        let (repeat, dir) = (self.repeat(), world.home.path().to_owned());
        summary.findings.extend(violations.into_iter().map(|violation| Finding {
            violation,
            repeat: repeat.clone(),
            dir: dir.clone(),
        }));
        summary
    }

    /// The command that makes the same strikes again, at moments that differ.
    fn repeat(&self) -> String {
        let store = if self.sqlite { "sqlite" } else { "postgres" };
        let (seed, kills) = (self.seed, self.kills);
        let at: String = self.at.iter().map(|place| format!(" --at {place}")).collect();
        let broken = self.broken.map(|broken| format!(" --broken {}", broken.as_str()));
        let broken = broken.unwrap_or_default();
        format!(
            "cargo run -p hapax-crash -- messaging --seed {seed} --kills {kills} --store {store}{at}{broken}"
        )
    }
}

/// Has parked events sent again, as somebody would who looks after them.
async fn replay(log: Log, lines: usize, stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        for line in (0..lines).map(Line) {
            // The server may be away; next time is soon.
            let _ = log.replay(line).await;
        }
        sleep(REPLAY_EVERY).await;
    }
}
