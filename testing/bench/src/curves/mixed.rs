//! Our way on a store that held keys before: fresh requests, and retries of finished ones.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    arms::{Arm, Batches, EffectCounter, StoredCount, engine::EngineArm},
    error::BenchError,
    load::Numbers,
};

/// Which requests are made.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    /// How many of a hundred are retries.
    pub(super) retries_percent: u64,
    /// The numbers of finished requests that are retried.
    pub(super) finished: Range<u64>,
    /// The number of the first fresh request.
    pub(super) first: u64,
}

pub(super) struct Mixed {
    engine: EngineArm,
    mix: Mix,
    fresh: Numbers,
    replays: AtomicU64,
}

impl Mixed {
    pub(super) fn new(engine: EngineArm, mix: Mix) -> Self {
        let (fresh, replays) = (Numbers::from(mix.first), AtomicU64::new(0));
        Self { engine, mix, fresh, replays }
    }

    /// The number of the next fresh request.
    pub(super) fn upcoming(&self) -> u64 {
        self.fresh.upcoming()
    }
}

impl Arm for Mixed {
    async fn request(&self, _: u64) -> Result<(), BenchError> {
        if fastrand::u64(..100) >= self.mix.retries_percent {
            return self.engine.request(self.fresh.next()).await;
        }
        let number = fastrand::u64(self.mix.finished.clone());
        self.engine.replay(&self.engine.ask(number)?).await?;
        self.replays.fetch_add(1, Relaxed);
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        self.engine.effects()
    }

    /// Reads back what is fresh: the rest of the store may be too large to count.
    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let fresh = self.mix.first..self.fresh.upcoming();
        let asked = fresh.end - fresh.start;
        let completed = self.engine.completed(fresh).await?;
        Ok(StoredCount { completed, others: asked - completed })
    }

    fn batches(&self) -> Option<Batches> {
        self.engine.batches()
    }

    fn purged(&self) -> u64 {
        self.engine.purged()
    }

    fn replays(&self) -> u64 {
        self.replays.load(Relaxed)
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
