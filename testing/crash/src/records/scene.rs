//! Where victims work together on the same operations, and what is left behind there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hapax_core::Scope;

use super::{
    args::RecordVictimArgs,
    check::{RecordViolation, check},
    facts::gather,
    hunt::RecordHunt,
    report::RecordReport,
};
use crate::{
    error::CrashError,
    hunt::{Home, HuntFinding, Strike, Victim, VictimEnd},
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
    args: RecordVictimArgs,
}

impl Scene {
    pub(crate) fn new(hunt: &RecordHunt, home: &Home, name: &str) -> Result<Self, CrashError> {
        let dir = home.dir().join(name.replace(' ', "-"));
        fs::create_dir_all(&dir).map_err(CrashError::io(format!("make {}", dir.display())))?;
        let args = RecordVictimArgs {
            store: home.address().clone(),
            dir: dir.clone(),
            scope: format!("{} {name}", hunt.seed),
            seed: hunt.seed,
            keys: 0,
            callers: CALLERS,
            die_at: None,
            linger: false,
            finish: false,
            limit_ms: RECOVERY_LIMIT_MS,
            broken: hunt.broken,
        };
        Ok(Self { program: hunt.program.clone(), dir, args })
    }

    /// Starts a victim that asks for `keys` operations.
    pub(crate) fn start(
        &self,
        name: &str,
        keys: usize,
        change: impl FnOnce(&mut RecordVictimArgs),
    ) -> Result<Victim, CrashError> {
        let mut args = RecordVictimArgs { keys, ..self.args.clone() };
        change(&mut args);
        Victim::start(args.command(&self.program), self.dir.join(format!("{name}.log")))
    }

    /// Runs a victim, known by its number, until it dies of this strike or misses it.
    pub(crate) fn strike(
        &self,
        victim: usize,
        keys: usize,
        strike: &Strike,
    ) -> Result<VictimEnd, CrashError> {
        let victim = self.start(&format!("victim-{victim}"), keys, |args| {
            args.seed = args.seed.wrapping_add(victim as u64);
            args.linger = true;
            args.finish = victim.is_multiple_of(2);
            args.limit_ms = STRIKE_LIMIT_MS;
            args.die_at = strike.die_at();
        })?;
        victim.die_of(strike)
    }

    /// Lets two processes recover everything, and checks what is left behind.
    pub(crate) fn finish(
        &self,
        home: &Home,
        keys: usize,
        mut violations: Vec<RecordViolation>,
        report: &mut RecordReport,
        repeat: &str,
    ) -> Result<(), CrashError> {
        let healers = ["recovery-a", "recovery-b"]
            .map(|name| self.start(name, keys, |args| args.finish = true));
        for healer in healers {
            match healer?.wait()? {
                VictimEnd::Ended => {}
                VictimEnd::Killed => {
                    violations.push(RecordViolation::Failed { how: "killed".to_owned() })
                }
                VictimEnd::Failed(how) => violations.push(RecordViolation::Failed { how }),
            }
        }
        let scope = Scope::parse(&self.args.scope).map_err(CrashError::name)?;
        match home.block_on(gather(&self.args.store, &self.dir, &scope, keys)) {
            Ok(facts) => {
                violations.extend(check(&facts));
                report.count(&facts);
            }
            Err(CrashError::Store(error)) => {
                violations.push(RecordViolation::Unreadable { how: format!("{error:?}") });
            }
            Err(error) => return Err(error),
        }
        report.findings.extend(HuntFinding::of(violations, repeat, &self.dir));
        Ok(())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}
