//! The hunt that all victims share: one episode after the other, until enough have died.
//!
//! - [`Deaths`]: how they died; [`Strike`]: how one dies; [`HuntFinding`]: what a check found;
//! - `Hunt`: hands out episodes to all who work on it, and adds up what they report;
//! - `process`: starts a victim, strikes it, and sees how it ended; `home`: a store for victims.

mod deaths;
mod finding;
mod home;
mod process;
mod strike;
mod workers;

use std::{
    ops::AddAssign,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::{deaths::Deaths, finding::HuntFinding, strike::Strike};
pub(crate) use self::{
    home::Home,
    process::{Victim, VictimEnd},
    strike::place_in_turn,
    workers::side_by_side,
};
use crate::error::CrashError;

/// A hunt that is under way. Whoever works on it takes one episode after the other.
pub(crate) struct Hunt<'a, R> {
    episodes: Episodes,
    is_enough: &'a (dyn Fn(&R) -> bool + Sync),
    progress: &'a (dyn Fn(&R) + Sync),
    so_far: Mutex<SoFar<R>>,
}

/// Which episodes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Episodes {
    /// This one.
    Only(usize),
    /// As many as it takes, and no more than these: most strikes may miss.
    AtMost(usize),
}

impl Episodes {
    /// The one to repeat, if there is one.
    pub(crate) fn of(only: Option<usize>, most: usize) -> Self {
        only.map_or(Self::AtMost(most), Self::Only)
    }
}

#[derive(Default)]
struct SoFar<R> {
    begun: usize,
    report: R,
}

impl<'a, R: Default> Hunt<'a, R> {
    /// One that ends when enough was reported, and tells `progress` after every episode.
    pub(crate) fn new(
        episodes: Episodes,
        is_enough: &'a (dyn Fn(&R) -> bool + Sync),
        progress: &'a (dyn Fn(&R) + Sync),
    ) -> Self {
        Self { episodes, is_enough, progress, so_far: Mutex::default() }
    }

    /// Runs one episode after the other, known by their numbers, until the hunt is over.
    pub(crate) fn work<E>(
        &self,
        mut episode: impl FnMut(usize) -> Result<E, CrashError>,
    ) -> Result<(), CrashError>
    where
        R: AddAssign<E>,
    {
        while let Some(number) = self.next() {
            let found = episode(number)?;
            let mut so_far = self.lock();
            so_far.report += found;
            (self.progress)(&so_far.report);
        }
        Ok(())
    }

    /// Whether no episode will begin any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ends_with(&self.lock())
    }

    /// Looks at what was reported so far, or adds to it.
    pub(crate) fn report<T>(&self, look: impl FnOnce(&mut R) -> T) -> T {
        look(&mut self.lock().report)
    }

    /// Everything that was reported.
    pub(crate) fn end(self) -> R {
        self.so_far.into_inner().unwrap_or_else(PoisonError::into_inner).report
    }

    fn next(&self) -> Option<usize> {
        let mut so_far = self.lock();
        if self.ends_with(&so_far) {
            return None;
        }
        let number = match self.episodes {
            Episodes::Only(number) => number,
            Episodes::AtMost(_) => so_far.begun,
        };
        so_far.begun += 1;
        Some(number)
    }

    fn ends_with(&self, so_far: &SoFar<R>) -> bool {
        match self.episodes {
            Episodes::Only(_) => so_far.begun > 0,
            Episodes::AtMost(most) => so_far.begun >= most || (self.is_enough)(&so_far.report),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SoFar<R>> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
