//! One journal: victims die over it one after the other, the last ones finish it, and it is checked.

use std::{fs, path::PathBuf};

use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{
    check::{Stage, Violation, check},
    drive::{Broken, Drive},
    facts::gather,
    orders::{Orders, Task},
    server::{Manners, Server},
    strike,
    summary::Summary,
};
use crate::{
    drive::{Fate, Strike, Victim},
    error::CrashError,
    finding::Finding,
};

/// Victims that die over one journal, one after the other.
const ROUNDS: usize = 6;
/// Operations that each of them begins.
const OPERATIONS: usize = 4;
/// Every so often a second process is at work at the same time.
const COMPANY_EVERY: usize = 3;
/// What the strikes of those are drawn from, besides the seed.
const BESIDE: u64 = 0xb5de;

/// Runs episode `number`.
pub(super) fn run(drive: &Drive, runtime: &Handle, number: usize) -> Result<Summary, CrashError> {
    let home = tempfile::Builder::new().prefix("hapax-crash-client-").tempdir();
    let home = home.map_err(CrashError::io("make a temporary directory"))?;
    let mut episode = Episode::new(drive, runtime, number, home)?;
    for round in 0..ROUNDS {
        episode.round(round)?;
    }
    episode.finish()
}

struct Episode<'a> {
    drive: &'a Drive,
    runtime: &'a Handle,
    number: usize,
    home: TempDir,
    server: Server,
    orders: Orders,
    violations: Vec<Violation>,
    summary: Summary,
}

impl<'a> Episode<'a> {
    fn new(
        drive: &'a Drive,
        runtime: &'a Handle,
        number: usize,
        home: TempDir,
    ) -> Result<Self, CrashError> {
        let dir = home.path().to_owned();
        let seed = drive.seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut orders = Orders {
            dir: dir.clone(),
            url: String::new(),
            task: Task::Send,
            operations: 0,
            seed,
            die_at: None,
            forgetful: drive.broken == Some(Broken::ForgetfulClient),
        };
        let manners = match drive.broken {
            Some(Broken::NaiveServer) => Manners::Naive,
            Some(Broken::ForgetfulClient) | None => Manners::Layer,
        };
        let server = Server::start(&dir, orders.journal(), (manners, seed));
        let server = runtime.block_on(server)?;
        server.url().clone_into(&mut orders.url);
        let (violations, summary) = (Vec::new(), Summary::default());
        Ok(Self { drive, runtime, number, home, server, orders, violations, summary })
    }

    /// One victim, or two at once, on the operations of all rounds so far and a few new ones.
    fn round(&mut self, round: usize) -> Result<(), CrashError> {
        self.orders.operations += OPERATIONS;
        let (seed, number) = (self.drive.seed, self.number * ROUNDS + round);
        let strike = match round {
            0 => strike::first(seed, self.number),
            _ => strike::draw(seed, number),
        };
        // The other one dies as well, or goes on. The first makes the file by itself.
        let company = round > 0 && (self.number + round).is_multiple_of(COMPANY_EVERY);
        let other = company.then(|| match strike::draw(seed ^ BESIDE, number) {
            at @ Strike::At(_) => Some(at),
            Strike::After(_) | Strike::Asleep { .. } => None,
        });
        let beside = match &other {
            Some(strike) => Some(self.start(&format!("beside-{round}"), strike.as_ref())?),
            None => None,
        };
        let mut victim = self.start(&format!("victim-{round}"), Some(&strike))?;
        match &strike {
            Strike::At(_) => {}
            Strike::After(delay) => victim.kill_after(*delay)?,
            Strike::Asleep { after, sleep, awake } => {
                victim.sleep_after(*after, *sleep)?;
                victim.kill_after(*awake)?;
            }
        }
        self.bury(victim.wait()?, Some(&strike));
        if let Some(beside) = beside {
            self.summary.in_company += 1;
            self.bury(beside.wait()?, other.flatten().as_ref());
        }
        Ok(())
    }

    fn start(&mut self, name: &str, strike: Option<&Strike>) -> Result<Victim, CrashError> {
        self.orders.seed = self.orders.seed.wrapping_add(1);
        let die_at = match strike {
            Some(Strike::At(at)) => Some(at.clone()),
            Some(Strike::After(_) | Strike::Asleep { .. }) | None => None,
        };
        let command = Orders { die_at, ..self.orders.clone() }.command(&self.drive.program);
        Victim::start_command(command, self.home.path().join(format!("{name}.log")))
    }

    /// Counts how a victim ended.
    fn bury(&mut self, fate: Fate, strike: Option<&Strike>) {
        match (fate, strike) {
            (Fate::Failed(how), _) => self.violations.push(Violation::Failed { how }),
            (Fate::Killed, Some(Strike::At(at))) => {
                *self.summary.killed_at.entry(at.place.clone()).or_default() += 1;
            }
            (Fate::Killed, Some(Strike::After(_))) => self.summary.killed_at_random += 1,
            (Fate::Killed, Some(Strike::Asleep { .. })) => self.summary.killed_after_sleep += 1,
            (Fate::Killed, None) => {
                let how = "killed by nobody".to_owned();
                self.violations.push(Violation::Failed { how });
            }
            (Fate::Ended, Some(_)) => self.summary.missed += 1,
            (Fate::Ended, None) => {}
        }
    }

    /// Lets everything be resumed and checks; then lets everything be asked for again, while nothing
    /// goes wrong, and checks again.
    fn finish(mut self) -> Result<Summary, CrashError> {
        for (task, stage) in [(Task::Resume, Stage::Resumed), (Task::AskAgain, Stage::AskedAgain)] {
            if task == Task::AskAgain {
                self.server.calm_down();
            }
            self.orders.task = task;
            let last = self.start(&format!("{stage:?}"), None)?;
            let fate = last.wait()?;
            self.bury(fate, None);
            let journal = self.orders.journal();
            let facts = gather(self.home.path(), &journal, self.server.books());
            let facts = self.runtime.block_on(facts)?;
            self.violations.extend(check(&facts, stage));
            match stage {
                Stage::Resumed => self.summary.conclude(&facts),
                Stage::AskedAgain => self.summary.count(&facts),
            }
        }
        let dir = self.keep_if_broken();
        let repeat = self.drive.repeat(self.number);
        self.summary.findings.extend(self.violations.into_iter().map(|violation| Finding {
            violation,
            repeat: repeat.clone(),
            dir: dir.clone(),
        }));
        Ok(self.summary)
    }

    /// Leaves the files for whoever wants to know what happened.
    fn keep_if_broken(&mut self) -> PathBuf {
        let books = format!("{:#?}\n", self.server.books().read());
        if !self.violations.is_empty() {
            self.home.disable_cleanup(true);
            // What cannot be kept is a pity, and changes nothing about what was found.
            let _ = fs::write(self.home.path().join("books.log"), books);
        }
        self.home.path().to_owned()
    }
}
