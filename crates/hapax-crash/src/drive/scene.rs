//! Where victims work together on the same operations, and what is left behind there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hapax_core::Scope;
use tokio::runtime::Runtime;

use super::{
    Drive,
    facts::gather,
    home::Home,
    process::{Fate, Victim},
    strike::Strike,
    summary::Summary,
};
use crate::{
    check::{Violation, check},
    error::CrashError,
    finding::Finding,
    victim::Orders,
};

const CALLERS: u64 = 24;
/// How long a victim may take to come to the place it is to die at.
const STRIKE_LIMIT_MS: u64 = 1500;
/// How long recovery may take before operations count as stuck.
const RECOVERY_LIMIT_MS: u64 = 20_000;

/// Where an episode takes place.
#[derive(Debug)]
pub(crate) struct Scene {
    program: PathBuf,
    dir: PathBuf,
    orders: Orders,
}

impl Scene {
    pub(crate) fn new(drive: &Drive, home: &Home, name: &str) -> Result<Self, CrashError> {
        let dir = home.dir().join(name.replace(' ', "-"));
        fs::create_dir_all(&dir).map_err(CrashError::io(format!("make {}", dir.display())))?;
        let orders = Orders {
            store: home.address().clone(),
            dir: dir.clone(),
            scope: format!("{} {name}", drive.seed),
            seed: drive.seed,
            keys: 0,
            callers: CALLERS,
            die_at: None,
            linger: false,
            finish: false,
            limit_ms: RECOVERY_LIMIT_MS,
            broken: drive.broken,
        };
        Ok(Self { program: drive.program.clone(), dir, orders })
    }

    /// Starts a victim that asks for `keys` operations.
    pub(crate) fn start(
        &self,
        name: &str,
        keys: usize,
        change: impl FnOnce(&mut Orders),
    ) -> Result<Victim, CrashError> {
        let mut orders = Orders { keys, ..self.orders.clone() };
        change(&mut orders);
        Victim::start(&self.program, &orders, self.dir.join(format!("{name}.log")))
    }

    /// Runs a victim, known by its number, until it dies of this strike or misses it.
    pub(crate) fn strike(
        &self,
        victim: usize,
        keys: usize,
        strike: &Strike,
    ) -> Result<Fate, CrashError> {
        let mut victim = self.start(&format!("victim-{victim}"), keys, |orders| {
            orders.seed = orders.seed.wrapping_add(victim as u64);
            orders.linger = true;
            orders.finish = victim.is_multiple_of(2);
            orders.limit_ms = STRIKE_LIMIT_MS;
            orders.die_at = match strike {
                Strike::At(at) => Some(at.clone()),
                Strike::After(_) | Strike::Asleep { .. } => None,
            };
        })?;
        match strike {
            Strike::At(_) => {}
            Strike::After(delay) => victim.kill_after(*delay)?,
            Strike::Asleep { after, sleep, awake } => {
                victim.sleep_after(*after, *sleep)?;
                victim.kill_after(*awake)?;
            }
        }
        victim.wait()
    }

    /// Lets two processes recover everything, and checks what is left behind.
    pub(crate) fn finish(
        &self,
        runtime: &Runtime,
        keys: usize,
        mut violations: Vec<Violation>,
        summary: &mut Summary,
        repeat: &str,
    ) -> Result<(), CrashError> {
        let healers = ["recovery-a", "recovery-b"]
            .map(|name| self.start(name, keys, |orders| orders.finish = true));
        for healer in healers {
            match healer?.wait()? {
                Fate::Ended => {}
                Fate::Killed => violations.push(Violation::Failed { how: "killed".to_owned() }),
                Fate::Failed(how) => violations.push(Violation::Failed { how }),
            }
        }
        let scope = Scope::parse(&self.orders.scope).map_err(CrashError::name)?;
        match runtime.block_on(gather(&self.orders.store, &self.dir, &scope, keys)) {
            Ok(facts) => {
                violations.extend(check(&facts));
                summary.count(&facts);
            }
            Err(CrashError::Store(error)) => {
                violations.push(Violation::Unreadable { how: format!("{error:?}") });
            }
            Err(error) => return Err(error),
        }
        summary.findings.extend(violations.into_iter().map(|violation| Finding {
            violation,
            repeat: repeat.to_owned(),
            dir: self.dir.clone(),
        }));
        Ok(())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}
