//! Starts victims and kills them, on all lines at once, while the servers come and go.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::runtime::Handle;

use super::{
    drive::Drive,
    orders::{Orders, Role},
    state::{ROLES, State},
    strike,
    summary::Summary,
    trouble::Trouble,
    world::Servers,
};
use crate::{
    drive::{Strike, Victim},
    error::CrashError,
};

/// Victims of each role at work on a line at the same time: two relays fight for its lanes.
const AT_ONCE: usize = 2;
/// One relay in so many refuses some events; one has a clock that is stepped.
const CHOOSY: usize = 3;
const STEPPED: usize = 4;
const CLOCK_STEP_MS: [i64; 2] = [1500, -1500];
/// How long the servers are left in peace in between.
const PEACE: Duration = Duration::from_millis(2500);
const NAP: Duration = Duration::from_millis(50);
/// Longer than anybody waits for the last ones.
const LAST_WORK_MS: u64 = 150_000;

/// What all who hunt share.
#[derive(Clone, Copy)]
pub(super) struct Hunt<'a> {
    pub(super) drive: &'a Drive,
    pub(super) state: &'a Mutex<State>,
    pub(super) orders: &'a Orders,
    pub(super) logs: &'a Path,
    pub(super) progress: &'a (dyn Fn(&Summary) + Sync),
}

impl Hunt<'_> {
    /// Kills until enough have died.
    pub(super) fn run(
        self,
        servers: (&mut Servers, &str),
        runtime: &Handle,
    ) -> Result<(), CrashError> {
        thread::scope(|scope| {
            let mut hunters = vec![scope.spawn(move || self.trouble(servers, runtime))];
            for line in 0..self.drive.lines {
                for role in ROLES {
                    let hunt = move || self.kill(line, role);
                    hunters.extend((0..AT_ONCE).map(|_| scope.spawn(hunt)));
                }
            }
            let joined: Vec<_> = hunters.into_iter().map(|hunter| hunter.join()).collect();
            joined.into_iter().try_for_each(|joined| match joined {
                Ok(hunted) => hunted,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Victims that nobody strikes: one relay and one consumer for each line.
    pub(super) fn last(self) -> Result<Vec<(Role, Victim)>, CrashError> {
        let mut last = Vec::new();
        for line in 0..self.drive.lines {
            for role in ROLES {
                let work_ms = LAST_WORK_MS;
                let orders = Orders { line, work_ms, broken: None, ..self.orders.clone() };
                let log = self.logs.join(format!("last-{}-{line}.log", role.as_str()));
                let command = orders.command(&self.drive.program, role);
                last.push((role, Victim::start_command(command, log)?));
            }
        }
        Ok(last)
    }

    /// One victim after the other.
    fn kill(self, line: usize, role: Role) -> Result<(), CrashError> {
        loop {
            let Some((number, strike)) = lock(self.state).next(self.drive, role) else {
                return Ok(());
            };
            let mut victim = self.start(line, role, number, &strike)?;
            match &strike {
                Strike::At(_) => {}
                Strike::After(delay) => victim.kill_after(*delay)?,
                Strike::Asleep { after, sleep, awake } => {
                    victim.sleep_after(*after, *sleep)?;
                    victim.kill_after(*awake)?;
                }
            }
            let fate = victim.wait()?;
            lock(self.state).bury(role, fate, &strike);
        }
    }

    fn start(
        self,
        line: usize,
        role: Role,
        number: usize,
        strike: &Strike,
    ) -> Result<Victim, CrashError> {
        let parking = matches!(strike, Strike::At(at) if at.place.starts_with("outbox.park"));
        let work_ms = u64::try_from(strike::work(strike).as_millis()).unwrap_or(u64::MAX);
        let stepped = number % STEPPED == STEPPED - 1;
        let orders = Orders {
            line,
            work_ms,
            die_at: match strike {
                Strike::At(at) => Some(at.clone()),
                Strike::After(_) | Strike::Asleep { .. } => None,
            },
            choosy: parking || number.is_multiple_of(CHOOSY),
            clock_step_ms: if stepped { CLOCK_STEP_MS[number / STEPPED % 2] } else { 0 },
            ..self.orders.clone()
        };
        let log = self.logs.join(format!("{}-{number}.log", role.as_str()));
        Victim::start_command(orders.command(&self.drive.program, role), log)
    }

    /// One trouble after the other, with some peace in between.
    fn trouble(self, servers: (&mut Servers, &str), runtime: &Handle) -> Result<(), CrashError> {
        let (servers, url) = servers;
        for trouble in Trouble::ALL.into_iter().cycle() {
            if self.is_over_after(PEACE) {
                break;
            }
            (self.progress)(&lock(self.state).summary);
            if let Some(frozen) = self.drive.frozen {
                trouble.befall((servers, url), runtime, frozen)?;
                *lock(self.state).summary.troubles.entry(trouble).or_default() += 1;
            }
        }
        Ok(())
    }

    fn is_over_after(self, peace: Duration) -> bool {
        let mut left = peace;
        while !left.is_zero() && !lock(self.state).is_over(self.drive) {
            thread::sleep(NAP.min(left));
            left = left.saturating_sub(NAP);
        }
        lock(self.state).is_over(self.drive)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
