//! Kills victims one after the other, lets the last finish, and checks.

use std::{fmt, fs, ops::AddAssign, path::PathBuf};

use hapax_core::Faults;

use super::{args::StepsVictimArgs, audit::audit, ledger::Ledger, victim};
use crate::{
    error::CrashError,
    hunt::{Deaths, Episodes, Home, Hunt, Strike, Victim, VictimEnd},
    place::DieAt,
    watched,
};

/// How workflows are hunted.
#[derive(Debug, Clone)]
pub struct StepsHunt {
    /// The program that is a victim when started as `PROGRAM steps-victim`.
    pub program: PathBuf,
    /// The PostgreSQL server to use; a SQLite file if not given.
    pub postgres_url: Option<String>,
    /// How many processes must die; more do if nobody has died at some place yet.
    pub kills: usize,
    /// Which passing of each place they die at first.
    pub seed: u64,
    /// Whether victims repeat what they could ask for, to see whether that is noticed.
    pub never_probe: bool,
}

/// What was done, and what was found.
#[derive(Debug, Clone, Default)]
pub struct StepsReport {
    /// How victims died.
    pub deaths: Deaths,
    /// How many operations there were.
    pub operations: usize,
    /// What is wrong.
    pub findings: Vec<String>,
}

/// Operations of an episode.
const KEYS: usize = 6;
/// Victims that die on the same operations.
const VICTIMS: usize = 8;
/// Parts of the names of places that are passed only where others have died before, or seldom.
const RECOVERY: &[&str] = &["steps", "overdue", "probed"];
/// Episodes after which a place nobody dies at is one nobody passes.
const EPISODES_MAX: usize = 1000;

impl StepsHunt {
    /// Every place a victim can die at, those of the store first.
    pub fn places(&self) -> Vec<&'static str> {
        let own = match self.postgres_url {
            None => hapax_sqlite::PLACES,
            Some(_) => hapax_postgres::Store::PLACES,
        };
        // Records kept for an hour are not purged here, and nothing is read again: whoever sweeps
        // looks at the clock alone.
        let passed = |place: &&str| !place.contains("purge") && !place.contains("load");
        let all = [own, watched::PLACES, watched::STEP_PLACES, victim::PLACES].concat();
        all.into_iter().filter(passed).collect()
    }

    /// Hunts until enough have died, everywhere, or something is wrong.
    pub fn run(&self) -> Result<StepsReport, CrashError> {
        let url = self.postgres_url.as_deref();
        let home = Home::make(url)?;
        let places = self.places();
        let is_enough = |so_far: &StepsReport| {
            !so_far.findings.is_empty() || so_far.deaths.are_enough(self.kills, &places, 1)
        };
        let hunt = Hunt::new(Episodes::AtMost(EPISODES_MAX), &is_enough, &|_| {});
        hunt.work(|number| {
            let before = hunt.report(|so_far| so_far.deaths.clone());
            self.episode(&home, number, &before)
        })?;
        home.leave(url)?;
        Ok(hunt.end())
    }

    /// Runs episode `number`, after these have died before.
    fn episode(
        &self,
        home: &Home,
        number: usize,
        before: &Deaths,
    ) -> Result<StepsReport, CrashError> {
        let dir = home.dir().join(format!("steps-{number}"));
        fs::create_dir_all(&dir).map_err(CrashError::io("make a directory"))?;
        let args = StepsVictimArgs {
            store: home.address().clone(),
            dir: dir.clone(),
            scope: format!("steps {} {number}", self.seed),
            keys: KEYS,
            die_at: None,
            never_probe: self.never_probe,
        };
        let mut report = StepsReport { operations: KEYS, ..StepsReport::default() };
        for victim in 0..VICTIMS {
            let deaths = [before, &report.deaths];
            let is_new = |place: &&str| deaths.iter().all(|some| !some.at.contains_key(*place));
            let strike = self.draw(number * VICTIMS + victim, victim == 0, is_new);
            let args = StepsVictimArgs { die_at: strike.die_at(), ..args.clone() };
            let log = dir.join(format!("victim-{victim}.log"));
            let end = Victim::start(args.command(&self.program), log)?.die_of(&strike)?;
            if end == VictimEnd::Ended {
                // Everything was finished before it came there.
                break;
            }
            report.findings.extend(report.deaths.count(end, &strike));
        }
        match Victim::start(args.command(&self.program), dir.join("recovery.log"))?.wait()? {
            VictimEnd::Ended => {}
            VictimEnd::Killed => report.findings.push("the last was killed".to_owned()),
            VictimEnd::Failed(how) => report.findings.push(how),
        }
        report.findings.extend(home.block_on(check(&args))?);
        Ok(report)
    }

    /// Often a place nobody has died at, if there is one; sooner or later. The first of an episode
    /// dies where no operation is abandoned yet.
    fn draw(&self, number: usize, first: bool, is_new: impl Fn(&&str) -> bool) -> Strike {
        let mut dice = fastrand::Rng::with_seed(self.seed ^ (number as u64) << 8);
        let mut places = self.places();
        if first {
            places.retain(|place| !RECOVERY.iter().any(|part| place.contains(part)));
        } else if places.iter().any(&is_new) && dice.bool() {
            places.retain(is_new);
        }
        let place = places[dice.usize(..places.len())].to_owned();
        Strike::At(DieAt { place, nth: [1, 1, 2, 3, 5][dice.usize(..5)] })
    }
}

async fn check(args: &StepsVictimArgs) -> Result<Vec<String>, CrashError> {
    let store = args.store.open(Faults::default()).await?;
    let books = Ledger::open(&args.dir).and_then(|ledger| ledger.books());
    let books = books.map_err(CrashError::io("read the books"))?;
    let mut findings = Vec::new();
    for number in 0..args.keys {
        let operation = victim::operation(&args.scope, number)?;
        findings.extend(audit(&store, &books, &operation).await?);
    }
    Ok(findings)
}

impl AddAssign for StepsReport {
    fn add_assign(&mut self, other: Self) {
        self.deaths += other.deaths;
        self.operations += other.operations;
        self.findings.extend(other.findings);
    }
}

impl fmt::Display for StepsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kills, places) = (self.deaths.kills(), self.deaths.at.len());
        writeln!(f, "{kills} killed at {places} places, {} operations", self.operations)?;
        for (place, count) in &self.deaths.at {
            writeln!(f, "  {count:4} {place}")?;
        }
        writeln!(f, "{} findings", self.findings.len())?;
        self.findings.iter().try_for_each(|finding| writeln!(f, "  {finding}"))
    }
}
