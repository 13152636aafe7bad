//! Kills relays and consumers until enough have died, everywhere, while events are written.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use tokio::{runtime::Runtime, sync::watch, time::sleep};

use super::{
    args::{MessagingMistake, MessagingVictimArgs, Role},
    check::{MessagingViolation, check},
    finish,
    hunters::Hunters,
    line::Line,
    log::Log,
    report::MessagingReport,
    strike,
    trouble::Trouble,
    world::World,
    writer::{Business, SharedLedger},
};
use crate::{
    error::CrashError,
    hunt::{Episodes, Hunt, HuntFinding, Strike, VictimEnd},
    place, victim,
};

/// How relays and consumers are hunted.
#[derive(Debug, Clone)]
pub struct MessagingHunt {
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
    pub broken: Option<MessagingMistake>,
}

/// How often somebody has parked events sent again.
const REPLAY_EVERY: Duration = Duration::from_millis(300);
/// Victims beyond those that have to die, for places that are missed.
const MARGIN: usize = 40;
/// Times as many victims as have to die, after which it is over in any case.
const VICTIMS_FOR_A_KILL: usize = 6;

impl MessagingHunt {
    /// Every place a victim of this role can die at.
    pub fn places(&self, role: Role) -> Vec<&'static str> {
        place::chosen(strike::places(role, self.sqlite), &self.at)
    }

    /// Hunts until enough have died, lets others finish, and checks. Tells `progress` now and then.
    pub fn run(
        &self,
        progress: &(dyn Fn(&MessagingReport) + Sync),
    ) -> Result<MessagingReport, CrashError> {
        let runtime = victim::runtime()?;
        let mut world = runtime.block_on(World::start(self.sqlite, self.lines))?;
        let told = Arc::new(SharedLedger::default());
        let business = Business::at(&world.outbox, self.lines, Arc::clone(&told));
        let log = runtime.block_on(self.prepare(&world, &business))?;
        let (stop, stopped) = watch::channel(false);
        let writing = business.open(runtime.handle(), self.seed, &stopped);
        runtime.spawn(replay(log.clone(), self.lines, stopped));

        let (args, logs) = (self.args(&world), world.home.path().to_owned());
        let is_enough = |so_far: &MessagingReport| self.is_enough(so_far);
        let victims = (self.kills + MARGIN) * VICTIMS_FOR_A_KILL;
        // Too many die for a word about each: who troubles the servers tells.
        let hunt = Hunt::new(Episodes::AtMost(victims), &is_enough, &|_| {});
        let hunters = Hunters::new(self, &hunt, &args, &logs);
        hunters.run(world.servers(), runtime.handle(), progress)?;
        // Who writes may have ended by itself, which is told here.
        let _ = stop.send(true);
        for writer in writing {
            runtime.block_on(writer).map_err(CrashError::refused("write events"))??;
        }
        let unfinished = self.finish(&hunters, &runtime, &world, &log)?;

        let facts = runtime.block_on(finish::gather(self, &world, &business, &told))?;
        let (counts, found) = check(&facts);
        if !found.is_empty() {
            // What cannot be kept is a pity, and changes nothing about what was found.
            let _ = fs::write(logs.join("facts.log"), format!("{facts:#?}\n"));
        }
        runtime.shutdown_background();
        let mut report = hunt.end();
        report.counts = counts;
        let found = unfinished.into_iter().chain(found);
        report.findings.extend(HuntFinding::of(found, &self.repeat(), &logs));
        if !report.findings.is_empty() {
            world.home.disable_cleanup(true);
        }
        Ok(report)
    }

    /// Whether enough have died, everywhere, and everything has befallen the servers.
    fn is_enough(&self, so_far: &MessagingReport) -> bool {
        let befallen = |trouble| so_far.troubles.contains_key(trouble);
        let died = |role| so_far.deaths(role).are_enough(self.kills / 2, &self.places(role), 1);
        let peace = self.frozen.is_none();
        (peace || Trouble::ALL.iter().all(befallen)) && Role::ALL.into_iter().all(died)
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
        hunters: &Hunters<'_>,
        runtime: &Runtime,
        world: &World,
        log: &Log,
    ) -> Result<Vec<MessagingViolation>, CrashError> {
        let last = hunters.last()?;
        let unfinished = runtime.block_on(finish::settle(self, world, log))?;
        let mut violations: Vec<_> =
            unfinished.into_iter().map(|what| MessagingViolation::Unfinished { what }).collect();
        for (role, victim) in last {
            match victim.die_of(&Strike::After(Duration::ZERO))? {
                VictimEnd::Killed => {}
                VictimEnd::Ended => {
                    let how = "it ended before its time".to_owned();
                    violations.push(MessagingViolation::Failed { role, how });
                }
                VictimEnd::Failed(how) => violations.push(MessagingViolation::Failed { role, how }),
            }
        }
        Ok(violations)
    }

    fn args(&self, world: &World) -> MessagingVictimArgs {
        MessagingVictimArgs {
            outbox: world.outbox.clone(),
            inbox: world.inbox.clone(),
            nats: world.nats.clone(),
            line: 0,
            work_ms: 0,
            die_at: None,
            batch: 1,
            choosy: false,
            clock_step_ms: 0,
            broken: self.broken,
        }
    }

    /// The command that makes the same strikes again, at moments that differ.
    pub(super) fn repeat(&self) -> String {
        let store = if self.sqlite { "sqlite" } else { "postgres" };
        let (seed, kills) = (self.seed, self.kills);
        let at = place::options(&self.at);
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
