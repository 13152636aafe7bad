//! Starts victims, kills them, lets others recover, and checks, until enough have died.

mod episode;
mod facts;
mod home;
mod outage;
mod process;
mod scene;
mod strike;
mod summary;

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hapax_services::postgres::{Server, Settings};
use tokio::runtime::{self, Runtime};

pub(crate) use self::{
    home::Home,
    process::{Fate, Victim},
};
pub use self::{strike::Strike, summary::Summary};
use crate::{error::CrashError, place, victim::Broken, watched, workers};

/// How victims are driven to death.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The program that is a victim when started as `PROGRAM victim`.
    pub program: PathBuf,
    /// What they keep their records in.
    pub backend: Backend,
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
    pub broken: Option<Broken>,
}

/// What victims keep their records in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A SQLite file per worker.
    Sqlite,
    /// A database per worker.
    Postgres {
        /// On this server; on one of our own if not given.
        url: Option<String>,
    },
}

impl Backend {
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

impl Drive {
    /// Drives until enough have died, and says what was found. Tells `progress` after every
    /// episode.
    pub fn run(&self, progress: &(dyn Fn(&Summary) + Sync)) -> Result<Summary, CrashError> {
        let mut server = match &self.backend {
            Backend::Sqlite => None,
            Backend::Postgres { url: Some(_) } if self.server_stops == 0 => None,
            Backend::Postgres { .. } => Some(Server::start(Settings::default())?),
        };
        let url = match &self.backend {
            Backend::Sqlite | Backend::Postgres { url: None } => server.as_ref().map(Server::url),
            Backend::Postgres { url } => url.clone(),
        };
        let state = Mutex::new(State::default());
        workers::run(self.workers, || self.work(url.as_deref(), &state, progress))?;
        let mut summary = lock(&state).summary.clone();
        if let Some(server) = &mut server {
            outage::stop_under_load(self, server, &mut summary, progress)?;
        }
        Ok(summary)
    }

    /// Runs one episode after the other on a store of its own.
    fn work(
        &self,
        url: Option<&str>,
        state: &Mutex<State>,
        progress: &(dyn Fn(&Summary) + Sync),
    ) -> Result<(), CrashError> {
        let runtime = runtime()?;
        let mut home = match url {
            None => Home::sqlite()?,
            Some(url) => runtime.block_on(Home::postgres(url))?,
        };
        loop {
            let number = lock(state).next_episode(self);
            let Some(number) = number else { break };
            let found = episode::run(self, &runtime, &mut home, number)?;
            let mut state = lock(state);
            state.summary.add(found);
            progress(&state.summary);
        }
        match url {
            None => Ok(()),
            Some(url) => runtime.block_on(home.leave(url)),
        }
    }

    /// The places victims of this drive die at.
    fn places(&self) -> Vec<&'static str> {
        let mut places = self.backend.places();
        if !self.at.is_empty() {
            places.retain(|place| self.at.iter().any(|wanted| wanted == place));
        }
        places
    }

    /// The command that repeats an episode.
    fn repeat(&self, what: &str) -> String {
        let (store, seed) = (self.backend.as_str(), self.seed);
        let at: String = self.at.iter().map(|place| format!(" --at {place}")).collect();
        format!("cargo run -p hapax-crash -- drive --store {store} --seed {seed}{at} {what}")
    }
}

#[derive(Debug, Default)]
struct State {
    begun: usize,
    summary: Summary,
}

impl State {
    fn next_episode(&mut self, drive: &Drive) -> Option<usize> {
        let number = self.begun;
        let wanted = match drive.only {
            Some(_) => number == 0,
            // So many that most strikes may miss.
            None => number < drive.kills && !self.is_enough(drive),
        };
        self.begun += 1;
        wanted.then(|| drive.only.unwrap_or(number))
    }

    fn is_enough(&self, drive: &Drive) -> bool {
        let died_at = |place: &&str| self.summary.killed_at.contains_key(*place);
        self.summary.kills() >= drive.kills && drive.places().iter().all(died_at)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Result<Runtime, CrashError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CrashError::io("start a runtime"))
}
