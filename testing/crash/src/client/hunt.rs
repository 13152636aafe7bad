//! Kills clients until enough have died, everywhere.

use std::{iter, path::PathBuf};

use clap::ValueEnum;

use super::{episode, report::ClientReport, strike};
use crate::{
    error::CrashError,
    hunt::{Episodes, Hunt, side_by_side},
    victim,
};

/// How clients are hunted.
#[derive(Debug, Clone)]
pub struct ClientHunt {
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
    pub broken: Option<ClientMistake>,
}

/// What is done wrong, to see whether that is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientMistake {
    /// The server executes every request, whatever its key.
    NaiveServer,
    /// The client keeps its keys in memory alone.
    ForgetfulClient,
}

/// How many must die at every place.
const DEATHS_MIN: usize = 2;

impl ClientHunt {
    /// Every place a victim can die at, those of the journal first.
    pub fn places(&self) -> Vec<&'static str> {
        strike::places().collect()
    }

    /// Hunts until enough have died; where something is wrong on purpose, until it was noticed.
    /// Tells `progress` after every journal.
    pub fn run(
        &self,
        progress: &(dyn Fn(&ClientReport) + Sync),
    ) -> Result<ClientReport, CrashError> {
        let runtime = victim::runtime()?;
        let places = self.places();
        let is_enough = |so_far: &ClientReport| {
            let noticed = self.broken.is_some() && !so_far.findings.is_empty();
            noticed || so_far.deaths.are_enough(self.kills, &places, DEATHS_MIN)
        };
        let hunt = Hunt::new(Episodes::of(self.only, self.kills), &is_enough, progress);
        let work = || hunt.work(|number| episode::run(self, runtime.handle(), number));
        side_by_side(iter::repeat_n(&work, self.workers.max(1)))?;
        runtime.shutdown_background();
        Ok(hunt.end())
    }

    /// The command that repeats an episode.
    pub(super) fn repeat(&self, number: usize) -> String {
        let broken = self.broken.and_then(|broken| broken.to_possible_value());
        let broken = broken.map(|broken| format!(" --broken {}", broken.get_name()));
        let (seed, broken) = (self.seed, broken.unwrap_or_default());
        format!("cargo run -p hapax-crash -- client --seed {seed} --only {number}{broken}")
    }
}
