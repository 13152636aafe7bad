//! Keys that are in a store before anything is measured.
//!
//! They are written by SQL in bulk, because asking for millions of them would take the better part
//! of an hour, but sealed by the code that stores use: what a store reads is what it would have
//! written. A page of them and some outcomes are read back before anything is measured.

mod file;
mod tables;

use std::{ops::Range, path::Path, time::Duration};

use hapax::{Options, Policy, Timestamp, postgres, sqlite};
use hapax_core::codec::Row;
use tokio_postgres::Config;

use crate::{
    arms::{Arm as _, engine::EngineArm},
    error::BenchError,
    load::float,
};

/// The number of the first of them, far from those that are asked for.
pub(super) const FIRST: u64 = 1 << 40;

/// How many outcomes are read back.
const LOOKS: u64 = 100;
/// Rows that are written together.
const CHUNK: u64 = 100_000;

/// What is in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stock {
    pub(super) keys: u64,
    pub(super) age: Age,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Made in the last twelve hours, so nothing is past retention.
    Young,
    /// All past retention.
    Expired,
}

impl Stock {
    pub(super) fn numbers(self) -> Range<u64> {
        FIRST..FIRST + self.keys
    }

    /// When the key at this place was made: they are spread evenly, the oldest first.
    fn created_at(self, now: Timestamp, place: u64) -> Timestamp {
        const SPREAD: Duration = Duration::from_secs(12 * 60 * 60);
        let ends = match self.age {
            Age::Young => now,
            Age::Expired => now.minus(Policy::default().retention().window * 2),
        };
        let age = SPREAD.mul_f64(1.0 - float(place) / float(self.keys.max(1)));
        ends.minus(age)
    }

    /// Fills a file that may be new.
    pub(super) async fn put_in_file(self, path: &Path) -> Result<(), BenchError> {
        let store = sqlite::Store::open(path, sqlite::Options::default())?;
        let arm = EngineArm::start(store, at_rest())?;
        let mut writer = file::StockFileWriter::open(path)?;
        self.put(&arm, async |rows| writer.write(&rows)).await?;
        writer.finish()?;
        arm.close().await;
        let store = sqlite::Store::open(path, sqlite::Options::default())?;
        self.check(EngineArm::start(store, at_rest())?).await
    }

    /// Fills a database that may be new.
    pub(super) async fn put_in_database(self, config: &Config) -> Result<(), BenchError> {
        let store = postgres::Store::connect(config, postgres::Options::default()).await?;
        let arm = EngineArm::start(store, at_rest())?;
        let mut writer = tables::StockTableWriter::connect(config).await?;
        self.put(&arm, async |rows| writer.write(&rows).await).await?;
        writer.finish().await?;
        self.check(arm).await
    }

    async fn put(
        self,
        arm: &EngineArm,
        mut write: impl AsyncFnMut(Vec<Row>) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let now = arm.now().await?;
        let mut place = 0;
        while place < self.keys {
            let chunk = place..self.keys.min(place + CHUNK);
            place = chunk.end;
            let rows = chunk.map(|place| {
                let record = arm.finished(FIRST + place, self.created_at(now, place))?;
                Ok::<_, BenchError>(Row::seal(&record))
            });
            write(rows.collect::<Result<_, _>>()?).await?;
        }
        Ok(())
    }

    /// Whether the store takes it for its own.
    async fn check(self, arm: EngineArm) -> Result<(), BenchError> {
        arm.page().await?;
        let looks = FIRST..FIRST + LOOKS.min(self.keys);
        if arm.completed(looks.clone()).await? != looks.end - FIRST {
            return Err(BenchError::NotReplayed { found: "a record that was put there otherwise" });
        }
        if self.age == Age::Young {
            for number in looks {
                arm.replay(&arm.ask(number)?).await?;
            }
        }
        arm.close().await;
        Ok(())
    }
}

/// An engine that leaves its store alone.
fn at_rest() -> Options {
    const NEVER: Duration = Duration::from_secs(24 * 60 * 60);
    Options { sweep_every: NEVER, purge_every: NEVER, ..Options::default() }
}
