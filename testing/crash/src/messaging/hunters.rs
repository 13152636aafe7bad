//! Starts victims and kills them, on all lines at once, while the servers come and go.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use tokio::runtime::Handle;

use super::{
    args::{MessagingVictimArgs, Role},
    check::MessagingViolation,
    hunt::MessagingHunt,
    report::{Burial, MessagingReport},
    strike,
    trouble::Trouble,
    world::Servers,
};
use crate::{
    error::CrashError,
    hunt::{Deaths, Hunt, HuntFinding, Strike, Victim, side_by_side},
};

/// Victims of each role at work on a line at the same time: two relays fight for its lanes.
const AT_ONCE: usize = 2;
/// One relay in so many refuses some events; one has a clock that is stepped.
const CHOOSY: usize = 3;
const STEPPED: usize = 4;
/// Messages that consumers act on in one transaction, one consumer like this and the next like that.
const BATCHES: [usize; 2] = [1, 4];
const CLOCK_STEP_MS: [i64; 2] = [1500, -1500];
/// How long the servers are left in peace in between.
const PEACE: Duration = Duration::from_millis(2500);
const NAP: Duration = Duration::from_millis(50);
/// Longer than anybody waits for the last ones.
const LAST_WORK_MS: u64 = 150_000;

/// Those who hunt, on all lines at once.
pub(super) struct Hunters<'a> {
    plan: &'a MessagingHunt,
    hunt: &'a Hunt<'a, MessagingReport>,
    args: &'a MessagingVictimArgs,
    logs: &'a Path,
    /// How many victims of each role were started.
    begun: [AtomicUsize; 2],
}

type Job<'a> = Box<dyn FnOnce() -> Result<(), CrashError> + Send + 'a>;

impl<'a> Hunters<'a> {
    pub(super) fn new(
        plan: &'a MessagingHunt,
        hunt: &'a Hunt<'a, MessagingReport>,
        args: &'a MessagingVictimArgs,
        logs: &'a Path,
    ) -> Self {
        Self { plan, hunt, args, logs, begun: Default::default() }
    }

    /// Kills until enough have died. Whoever troubles the servers tells `progress`.
    pub(super) fn run(
        &self,
        servers: (&mut Servers, &str),
        runtime: &Handle,
        progress: &(dyn Fn(&MessagingReport) + Sync),
    ) -> Result<(), CrashError> {
        let mut jobs: Vec<Job<'_>> = vec![Box::new(|| self.trouble(servers, runtime, progress))];
        for line in 0..self.plan.lines {
            for role in Role::ALL {
                jobs.extend((0..AT_ONCE).map(|_| Box::new(move || self.kill(line, role)) as _));
            }
        }
        side_by_side(jobs).map(drop)
    }

    /// Victims that nobody strikes: one relay and one consumer for each line.
    pub(super) fn last(&self) -> Result<Vec<(Role, Victim)>, CrashError> {
        let mut last = Vec::new();
        for line in 0..self.plan.lines {
            for role in Role::ALL {
                let work_ms = LAST_WORK_MS;
                let args = MessagingVictimArgs { line, work_ms, broken: None, ..self.args.clone() };
                let log = self.logs.join(format!("last-{}-{line}.log", role.as_str()));
                let command = args.command(&self.plan.program, role);
                last.push((role, Victim::start(command, log)?));
            }
        }
        Ok(last)
    }

    /// One victim after the other.
    fn kill(&self, line: usize, role: Role) -> Result<(), CrashError> {
        let places = self.plan.places(role);
        self.hunt.work(|_| {
            // The strikes of a role are the same, however many of the other have died meanwhile.
            let number = self.begun[role as usize].fetch_add(1, Relaxed);
            let strike = strike::draw(self.plan.seed, number, &places);
            let end = self.start(line, role, number, &strike)?.die_of(&strike)?;
            let mut deaths = Deaths::default();
            let failed =
                deaths.count(end, &strike).map(|how| MessagingViolation::Failed { role, how });
            let failed = HuntFinding::of(failed, &self.plan.repeat(), self.logs).next();
            Ok(Burial { role, deaths, failed })
        })
    }

    fn start(
        &self,
        line: usize,
        role: Role,
        number: usize,
        strike: &Strike,
    ) -> Result<Victim, CrashError> {
        let parking = matches!(strike, Strike::At(at) if at.place.starts_with("outbox.park"));
        let work_ms = u64::try_from(strike::work(strike).as_millis()).unwrap_or(u64::MAX);
        let stepped = number % STEPPED == STEPPED - 1;
        let args = MessagingVictimArgs {
            line,
            work_ms,
            die_at: strike.die_at(),
            batch: BATCHES[number % BATCHES.len()],
            choosy: parking || number.is_multiple_of(CHOOSY),
            clock_step_ms: if stepped { CLOCK_STEP_MS[number / STEPPED % 2] } else { 0 },
            ..self.args.clone()
        };
        let log = self.logs.join(format!("{}-{number}.log", role.as_str()));
        Victim::start(args.command(&self.plan.program, role), log)
    }

    /// One trouble after the other, with some peace in between.
    fn trouble(
        &self,
        (servers, url): (&mut Servers, &str),
        runtime: &Handle,
        progress: &(dyn Fn(&MessagingReport) + Sync),
    ) -> Result<(), CrashError> {
        for trouble in Trouble::ALL.into_iter().cycle() {
            if self.is_over_after(PEACE) {
                break;
            }
            self.hunt.report(|so_far| progress(so_far));
            if let Some(frozen) = self.plan.frozen {
                trouble.befall((servers, url), runtime, frozen)?;
                self.hunt.report(|so_far| *so_far.troubles.entry(trouble).or_default() += 1);
            }
        }
        Ok(())
    }

    fn is_over_after(&self, peace: Duration) -> bool {
        let mut left = peace;
        while !left.is_zero() && !self.hunt.is_over() {
            thread::sleep(NAP.min(left));
            left = left.saturating_sub(NAP);
        }
        self.hunt.is_over()
    }
}
