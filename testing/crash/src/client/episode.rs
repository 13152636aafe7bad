//! One journal: victims die over it one after the other, the last ones finish it, and it is checked.

use std::{fs, path::PathBuf};

use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{
    args::{ClientVictimArgs, VictimTask},
    check::{ClientViolation, Stage, check},
    facts::gather,
    hunt::{ClientHunt, ClientMistake},
    report::ClientReport,
    server::{PaymentServer, ServerManners},
    strike,
};
use crate::{
    error::CrashError,
    hunt::{HuntFinding, Strike, Victim, VictimEnd},
};

/// Victims that die over one journal, one after the other.
const ROUNDS: usize = 6;
/// Operations that each of them begins.
const OPERATIONS: usize = 4;
/// One journal in so many is encrypted by the first who opens it, and one while it is in use.
const ENCRYPTED_EVERY: usize = 3;
/// The round from which on a journal in use is encrypted.
const ENCRYPTED_FROM: usize = 3;
/// Every so often a second process is at work at the same time.
const COMPANY_EVERY: usize = 3;
/// What the strikes of those are drawn from, besides the seed.
const BESIDE: u64 = 0xb5de;

/// Runs episode `number`.
pub(super) fn run(
    hunt: &ClientHunt,
    runtime: &Handle,
    number: usize,
) -> Result<ClientReport, CrashError> {
    let home = tempfile::Builder::new().prefix("hapax-crash-client-").tempdir();
    let home = home.map_err(CrashError::io("make a temporary directory"))?;
    let mut episode = Episode::new(hunt, runtime, number, home)?;
    for round in 0..ROUNDS {
        episode.round(round)?;
    }
    episode.finish()
}

struct Episode<'a> {
    hunt: &'a ClientHunt,
    runtime: &'a Handle,
    number: usize,
    home: TempDir,
    server: PaymentServer,
    args: ClientVictimArgs,
    violations: Vec<ClientViolation>,
    report: ClientReport,
}

impl<'a> Episode<'a> {
    fn new(
        hunt: &'a ClientHunt,
        runtime: &'a Handle,
        number: usize,
        home: TempDir,
    ) -> Result<Self, CrashError> {
        let dir = home.path().to_owned();
        let seed = hunt.seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut args = ClientVictimArgs {
            dir: dir.clone(),
            url: String::new(),
            task: VictimTask::Send,
            operations: 0,
            seed,
            die_at: None,
            encrypted: false,
            forgetful: hunt.broken == Some(ClientMistake::ForgetfulClient),
        };
        let manners = match hunt.broken {
            Some(ClientMistake::NaiveServer) => ServerManners::Naive,
            Some(ClientMistake::ForgetfulClient) | None => ServerManners::Layer,
        };
        let server = PaymentServer::start(&dir, args.journal(), (manners, seed));
        let server = runtime.block_on(server)?;
        server.url().clone_into(&mut args.url);
        let (violations, report) = (Vec::new(), ClientReport::default());
        Ok(Self { hunt, runtime, number, home, server, args, violations, report })
    }

    /// One victim, or two at once, on the operations of all rounds so far and a few new ones.
    fn round(&mut self, round: usize) -> Result<(), CrashError> {
        self.args.operations += OPERATIONS;
        let (seed, number) = (self.hunt.seed, self.number * ROUNDS + round);
        // The one who makes the file, or encrypts it, does so by itself.
        let makes = round == 0 || self.encrypted_from() == Some(round);
        self.args.encrypted = self.encrypted_from().is_some_and(|first| first <= round);
        let strike = match makes {
            true => strike::first(seed, self.number / ENCRYPTED_EVERY),
            false => strike::draw(seed, number),
        };
        // The other one dies as well, or goes on.
        let company = !makes && (self.number + round).is_multiple_of(COMPANY_EVERY);
        let other = company.then(|| match strike::draw(seed ^ BESIDE, number) {
            at @ Strike::At(_) => Some(at),
            Strike::After(_) | Strike::Asleep { .. } => None,
        });
        let beside = match &other {
            Some(strike) => Some(self.start(&format!("beside-{round}"), strike.as_ref())?),
            None => None,
        };
        let victim = self.start(&format!("victim-{round}"), Some(&strike))?;
        self.bury(victim.die_of(&strike)?, Some(&strike));
        if let Some(beside) = beside {
            self.report.in_company += 1;
            self.bury(beside.wait()?, other.flatten().as_ref());
        }
        Ok(())
    }

    /// The first round that is told the master key.
    fn encrypted_from(&self) -> Option<usize> {
        match self.number % ENCRYPTED_EVERY {
            0 => None,
            1 => Some(0),
            _ => Some(ENCRYPTED_FROM),
        }
    }

    fn start(&mut self, name: &str, strike: Option<&Strike>) -> Result<Victim, CrashError> {
        self.args.seed = self.args.seed.wrapping_add(1);
        let die_at = strike.and_then(Strike::die_at);
        let command = ClientVictimArgs { die_at, ..self.args.clone() }.command(&self.hunt.program);
        Victim::start(command, self.home.path().join(format!("{name}.log")))
    }

    /// Counts how a victim ended.
    fn bury(&mut self, end: VictimEnd, strike: Option<&Strike>) {
        let failed = match (end, strike) {
            (end, Some(strike)) => self.report.deaths.count(end, strike),
            (VictimEnd::Killed, None) => Some("killed by nobody".to_owned()),
            (VictimEnd::Failed(how), None) => Some(how),
            (VictimEnd::Ended, None) => None,
        };
        self.violations.extend(failed.map(|how| ClientViolation::Failed { how }));
    }

    /// Lets everything be resumed and checks; then lets everything be asked for again, while nothing
    /// goes wrong, and checks again.
    fn finish(mut self) -> Result<ClientReport, CrashError> {
        for (task, stage) in
            [(VictimTask::Resume, Stage::Resumed), (VictimTask::AskAgain, Stage::AskedAgain)]
        {
            if task == VictimTask::AskAgain {
                self.server.calm_down();
            }
            self.args.task = task;
            let last = self.start(&format!("{stage:?}"), None)?;
            self.bury(last.wait()?, None);
            let facts = gather(&self.args, self.server.books());
            let facts = self.runtime.block_on(facts)?;
            self.violations.extend(check(&facts, stage));
            match stage {
                Stage::Resumed => self.report.conclude(&facts),
                Stage::AskedAgain => self.report.count(&facts),
            }
        }
        self.report.encrypted += usize::from(self.args.encrypted);
        let dir = self.keep_if_broken();
        let repeat = self.hunt.repeat(self.number);
        self.report.findings.extend(HuntFinding::of(self.violations, &repeat, &dir));
        Ok(self.report)
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
