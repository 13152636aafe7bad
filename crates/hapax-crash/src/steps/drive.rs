//! Kills victims one after the other, lets the last finish, and checks.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use hapax_core::{Faults, Store};
use tokio::runtime::{self, Runtime};

use super::{
    audit::audit,
    ledger::Ledger,
    victim::{self, Orders},
};
use crate::{
    drive::{Fate, Home, Victim},
    error::CrashError,
    open::Address,
    place::DieAt,
    watched,
};

/// How workflows are killed.
#[derive(Debug, Clone)]
pub struct Drive {
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
pub struct Summary {
    /// How many died, by place.
    pub killed_at: BTreeMap<String, usize>,
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

impl Drive {
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

    /// Kills until enough have died, everywhere.
    pub fn run(&self) -> Result<Summary, CrashError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CrashError::io("start a runtime"))?;
        let home = match &self.postgres_url {
            None => Home::sqlite()?,
            Some(url) => runtime.block_on(Home::postgres(url))?,
        };
        let mut summary = Summary::default();
        for episode in 0..EPISODES_MAX {
            self.episode(&runtime, &home, episode, &mut summary)?;
            let everywhere =
                self.places().iter().all(|place| summary.killed_at.contains_key(*place));
            if summary.kills() >= self.kills && everywhere || !summary.findings.is_empty() {
                break;
            }
        }
        match &self.postgres_url {
            None => Ok(summary),
            Some(url) => runtime.block_on(home.leave(url)).map(|()| summary),
        }
    }

    fn episode(
        &self,
        runtime: &Runtime,
        home: &Home,
        episode: usize,
        summary: &mut Summary,
    ) -> Result<(), CrashError> {
        let dir = home.dir().join(format!("steps-{episode}"));
        fs::create_dir_all(&dir).map_err(CrashError::io("make a directory"))?;
        let orders = Orders {
            store: home.address().clone(),
            dir: dir.clone(),
            scope: format!("steps {} {episode}", self.seed),
            keys: KEYS,
            die_at: None,
            never_probe: self.never_probe,
        };
        for number in 0..VICTIMS {
            let die_at = self.draw(episode * VICTIMS + number, number == 0, summary);
            let place = die_at.place.clone();
            let orders = Orders { die_at: Some(die_at), ..orders.clone() };
            match self.victim(&orders, &dir.join(format!("victim-{number}.log")))? {
                Fate::Killed => *summary.killed_at.entry(place).or_default() += 1,
                // Everything was finished before it came there.
                Fate::Ended => break,
                Fate::Failed(how) => summary.findings.push(how),
            }
        }
        match self.victim(&orders, &dir.join("recovery.log"))? {
            Fate::Ended => {}
            Fate::Killed => summary.findings.push("the last was killed".to_owned()),
            Fate::Failed(how) => summary.findings.push(how),
        }
        summary.operations += KEYS;
        summary.findings.extend(runtime.block_on(self.check(&orders))?);
        Ok(())
    }

    /// Often a place nobody has died at, if there is one; sooner or later. The first of an episode
    /// dies where no operation is abandoned yet.
    fn draw(&self, number: usize, first: bool, summary: &Summary) -> DieAt {
        let mut dice = fastrand::Rng::with_seed(self.seed ^ (number as u64) << 8);
        let mut places = self.places();
        if first {
            places.retain(|place| !RECOVERY.iter().any(|part| place.contains(part)));
        } else if places.iter().any(|place| !summary.killed_at.contains_key(*place)) && dice.bool()
        {
            places.retain(|place| !summary.killed_at.contains_key(*place));
        }
        let place = places[dice.usize(..places.len())].to_owned();
        DieAt { place, nth: [1, 1, 2, 3, 5][dice.usize(..5)] }
    }

    fn victim(&self, orders: &Orders, log: &Path) -> Result<Fate, CrashError> {
        let mut command = Command::new(&self.program);
        orders.give(&mut command);
        Victim::start_command(command, log.to_owned())?.wait()
    }

    async fn check(&self, orders: &Orders) -> Result<Vec<String>, CrashError> {
        match &orders.store {
            Address::Sqlite(path) => check(Address::sqlite(path, Faults::default())?, orders).await,
            Address::Postgres(url) => {
                check(Address::postgres(url, Faults::default()).await?, orders).await
            }
        }
    }
}

async fn check<S: Store>(store: S, orders: &Orders) -> Result<Vec<String>, CrashError> {
    let books = Ledger::open(&orders.dir).and_then(|ledger| ledger.books());
    let books = books.map_err(CrashError::io("read the books"))?;
    let mut findings = Vec::new();
    for number in 0..orders.keys {
        let operation = victim::operation(&orders.scope, number)?;
        findings.extend(audit(&store, &books, &operation).await?);
    }
    Ok(findings)
}

impl Summary {
    /// How many died.
    pub fn kills(&self) -> usize {
        self.killed_at.values().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kills, places) = (self.kills(), self.killed_at.len());
        writeln!(f, "{kills} killed at {places} places, {} operations", self.operations)?;
        for (place, count) in &self.killed_at {
            writeln!(f, "  {count:4} {place}")?;
        }
        writeln!(f, "{} findings", self.findings.len())?;
        self.findings.iter().try_for_each(|finding| writeln!(f, "  {finding}"))
    }
}
