//! Kills victims, lets others recover, and checks, until enough have died.

use std::{iter, path::PathBuf};

use hapax_services::postgres::{Server, Settings};

use super::{args::RecordMistake, episode, outage, report::RecordReport};
use crate::{
    error::CrashError,
    hunt::{Episodes, Home, Hunt, side_by_side},
    place, watched,
};

/// How victims are hunted that keep records.
#[derive(Debug, Clone)]
pub struct RecordHunt {
    /// The program that is a victim when started as `PROGRAM victim`.
    pub program: PathBuf,
    /// What they keep their records in.
    pub backend: RecordBackend,
    /// How many processes must die; more do if nobody has died at some place yet.
    pub kills: usize,
    /// How often the database server is stopped at once under load, where there is one.
    pub server_stops: usize,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How many episodes run at the same time, each on a store of its own.
    pub workers: usize,
    /// The places to die at; all of them if none is named.
    pub at: Vec<String>,
    /// The one episode to run, instead of as many as it takes.
    pub only: Option<usize>,
    /// What the victims do wrong, to see whether that is noticed.
    pub broken: Option<RecordMistake>,
}

/// What victims keep their records in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordBackend {
    /// A SQLite file per worker.
    Sqlite,
    /// A database per worker.
    Postgres {
        /// On this server; on one of our own if not given.
        url: Option<String>,
    },
}

impl RecordBackend {
    /// The places victims on this store can die at, those of the store first.
    pub fn places(&self) -> Vec<&'static str> {
        let own = match self {
            Self::Sqlite => hapax_sqlite::PLACES,
            Self::Postgres { .. } => hapax_postgres::Store::PLACES,
        };
        let all = [own, watched::PLACES, place::VICTIM].concat();
        // Operations of one effect have none.
        all.into_iter().filter(|place| !place.contains("steps")).collect()
    }

    /// The word on the command line.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres { .. } => "postgres",
        }
    }
}

impl RecordHunt {
    /// Hunts until enough have died, and says what was found. Tells `progress` after every
    /// episode.
    pub fn run(
        &self,
        progress: &(dyn Fn(&RecordReport) + Sync),
    ) -> Result<RecordReport, CrashError> {
        let mut server = match &self.backend {
            RecordBackend::Sqlite => None,
            RecordBackend::Postgres { url: Some(_) } if self.server_stops == 0 => None,
            RecordBackend::Postgres { .. } => Some(Server::start(Settings::default())?),
        };
        let url = match &self.backend {
            RecordBackend::Sqlite | RecordBackend::Postgres { url: None } => {
                server.as_ref().map(Server::url)
            }
            RecordBackend::Postgres { url } => url.clone(),
        };
        let places = self.places();
        let is_enough = |so_far: &RecordReport| so_far.deaths.are_enough(self.kills, &places, 1);
        let hunt = Hunt::new(Episodes::of(self.only, self.kills), &is_enough, progress);
        let work = || {
            let mut home = Home::make(url.as_deref())?;
            hunt.work(|number| episode::run(self, &mut home, number))?;
            home.leave(url.as_deref())
        };
        side_by_side(iter::repeat_n(&work, self.workers.max(1)))?;
        let mut report = hunt.end();
        if let Some(server) = &mut server {
            outage::stop_under_load(self, server, &mut report, progress)?;
        }
        Ok(report)
    }

    /// The places victims of this hunt die at.
    pub(super) fn places(&self) -> Vec<&'static str> {
        place::chosen(self.backend.places(), &self.at)
    }

    /// The command that repeats an episode.
    pub(super) fn repeat(&self, what: &str) -> String {
        let (store, seed) = (self.backend.as_str(), self.seed);
        let at = place::options(&self.at);
        format!("cargo run -p hapax-crash -- drive --store {store} --seed {seed}{at} {what}")
    }
}
