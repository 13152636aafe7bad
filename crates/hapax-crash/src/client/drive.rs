//! Kills victims until enough have died, everywhere.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use clap::ValueEnum;
use tokio::runtime::{self, Handle};

use super::{episode, strike, summary::Summary};
use crate::{error::CrashError, workers};

/// How clients are killed.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The program that is a victim when started as `PROGRAM client-victim`.
    pub program: PathBuf,
    /// How many processes must die; more do if too few have died at some place yet.
    pub kills: usize,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How many journals are worked on at the same time.
    pub workers: usize,
    /// The one journal to repeat, instead of as many as it takes.
    pub only: Option<usize>,
    /// What is done wrong, to see whether that is noticed.
    pub broken: Option<Broken>,
}

/// What is done wrong, to see whether that is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Broken {
    /// The server executes every request, whatever its key.
    NaiveServer,
    /// The client keeps its keys in memory alone.
    ForgetfulClient,
}

/// How many must die at every place.
const DEATHS_MIN: usize = 2;

impl Drive {
    /// Every place a victim can die at, those of the journal first.
    pub fn places(&self) -> Vec<&'static str> {
        strike::places().collect()
    }

    /// Kills until enough have died. Tells `progress` after every journal.
    pub fn run(&self, progress: &(dyn Fn(&Summary) + Sync)) -> Result<Summary, CrashError> {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(CrashError::io("start a runtime"))?;
        let state = Mutex::new(State::default());
        workers::run(self.workers, || self.work(runtime.handle(), &state, progress))?;
        runtime.shutdown_background();
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(state.summary)
    }

    fn work(
        &self,
        runtime: &Handle,
        state: &Mutex<State>,
        progress: &(dyn Fn(&Summary) + Sync),
    ) -> Result<(), CrashError> {
        loop {
            let Some(number) = lock(state).next(self) else { return Ok(()) };
            let found = episode::run(self, runtime, number)?;
            let mut state = lock(state);
            state.summary.add(found);
            progress(&state.summary);
        }
    }

    /// The command that repeats an episode.
    pub(super) fn repeat(&self, number: usize) -> String {
        let broken = self.broken.and_then(|broken| broken.to_possible_value());
        let broken = broken.map(|broken| format!(" --broken {}", broken.get_name()));
        let (seed, broken) = (self.seed, broken.unwrap_or_default());
        format!("cargo run -p hapax-crash -- client --seed {seed} --only {number}{broken}")
    }
}

#[derive(Debug, Default)]
struct State {
    begun: usize,
    summary: Summary,
}

impl State {
    fn next(&mut self, drive: &Drive) -> Option<usize> {
        let number = self.begun;
        let wanted = match drive.only {
            Some(_) => number == 0,
            // So many that most strikes may miss.
            None => number < drive.kills && !self.is_enough(drive),
        };
        self.begun += 1;
        wanted.then(|| drive.only.unwrap_or(number))
    }

    /// Whether enough have died; where something is wrong on purpose, whether it was noticed.
    fn is_enough(&self, drive: &Drive) -> bool {
        let deaths = |place: &&str| self.summary.killed_at.get(*place).copied().unwrap_or(0);
        let everywhere = drive.places().iter().all(|place| deaths(place) >= DEATHS_MIN);
        let noticed = drive.broken.is_some() && !self.summary.findings.is_empty();
        noticed || self.summary.kills() >= drive.kills && everywhere
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
