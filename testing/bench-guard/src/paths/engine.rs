//! Concurrent callers of one engine, whose writes are gathered into batches.

use std::{
    future::pending,
    io,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::Duration,
};

use futures_util::future::join_all;
use hapax_core::{
    Attempt, AttemptEnd, Fingerprint, Note, Noted, OperationId, Outcome, Policy, Record, RunMode,
    Salt, Store, StoreError, StoredStep, Timestamp,
    clock::{ClockMark, ClockReading},
    incarnation::{
        Incarnation, IncarnationChange, IncarnationMark, IncarnationReading, Remembered,
    },
    memory,
    store::{Filter, Listed, Loaded, Page, Purged, Write, Written},
};
use hapax_engine::{Admission, BeginRequest, Engine, Options};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
};

use super::{SALT, operation};
use crate::{Failed, measure::each};

const CALLERS: usize = 64;
/// Claims and settles, each as one that finds a lane free and those that gather behind it.
const BATCHES_MAX: u64 = 4;
/// Longer than any run, so that what is done at intervals is not counted by chance.
const NEVER: Duration = Duration::from_secs(1 << 20);

/// Callers who begin together and end together: one commits alone, the others gather meanwhile.
pub(crate) fn batch(rounds: usize) -> Result<(), Failed> {
    let runtime = runtime()?;
    let within = runtime.enter();
    let engine = start(Agreeing::default());
    drop(within);
    let round = |asks: Vec<BeginRequest<'static>>| runtime.block_on(run_together(&engine, asks));
    round(asks(usize::MAX / CALLERS - 1)?)?;
    if engine.stats().batches > BATCHES_MAX {
        return Err("the writes of concurrent callers do not gather".into());
    }
    each(rounds, asks, |asks| asks.map(|asks| round(asks).is_ok()).is_ok());
    Ok(())
}

async fn run_together(engine: &Engine, asks: Vec<BeginRequest<'_>>) -> Result<(), Failed> {
    let mut permits = Vec::with_capacity(asks.len());
    for begun in join_all(asks.iter().map(|ask| engine.begin(ask))).await {
        let Admission::Execute(permit) = begun? else { return Err("not the first".into()) };
        permits.push(permit);
    }
    let ends =
        permits.into_iter().map(|permit| permit.settle(AttemptEnd::completed(Outcome::bare(200))));
    for settled in join_all(ends).await {
        settled?;
    }
    Ok(())
}

fn asks(round: usize) -> Result<Vec<BeginRequest<'static>>, Failed> {
    let ask = |caller| {
        Ok(BeginRequest {
            operation: operation(round * CALLERS + caller)?,
            request: Fingerprint::from_bytes([3; Fingerprint::BYTES]).into(),
            mode: RunMode::Run { request: None },
            policy: Policy::default(),
        })
    };
    (0..CALLERS).map(ask).collect()
}

/// One thread, so that everything happens in one order.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

pub(crate) fn store() -> memory::Store {
    memory::Store::new(SALT, || Timestamp::ZERO)
}

/// Must be called on a runtime.
pub(crate) fn start(store: impl Store) -> Engine {
    let options =
        Options { sweep_every: NEVER, purge_every: NEVER, seed: Some(7), ..Options::default() };
    Engine::start(store, options)
}

/// Agrees to every write after a moment in which others gather, so that the engine alone is counted.
#[derive(Debug, Default)]
struct Agreeing {
    /// How often it was told who is at work.
    position: AtomicI64,
}

impl Store for Agreeing {
    fn salt(&self) -> Salt {
        SALT
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        yield_now().await;
        let now = Timestamp::ZERO;
        batch.iter().map(|_| Ok(Written::Done { now })).collect()
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let nothing = |_| Ok(Loaded { now: Timestamp::ZERO, record: None });
        ids.into_iter().map(nothing).collect()
    }

    async fn steps(&self, _: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        Ok(Vec::new())
    }

    async fn overdue(&self, _: usize) -> Result<Vec<Record>, StoreError> {
        Ok(Vec::new())
    }

    async fn purge(&self, _: usize) -> Result<Purged, StoreError> {
        Ok(Purged::default())
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        Ok(ClockReading { now: Timestamp::ZERO, mark: None })
    }

    async fn keep_clock(&self, _: ClockMark) -> Result<(), StoreError> {
        Ok(())
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        let (now, incarnation) = (Timestamp::ZERO, Incarnation::new("agreeing", 0));
        let mark = IncarnationMark {
            incarnation: incarnation.clone(),
            position: self.position.load(Relaxed),
            began: 0,
            quarantine: None,
            lifted: None,
        };
        let processes = Vec::new();
        let (synchronous, remembered) = (false, Remembered::NotKept);
        let mark = Some(mark);
        Ok(IncarnationReading { now, incarnation, synchronous, mark, remembered, processes })
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.position.store(change.mark.position, Relaxed);
        Ok(true)
    }

    fn admit(&self, _: &Incarnation) {}

    async fn list(&self, _: Filter, _: Page) -> Result<Vec<Listed>, StoreError> {
        Ok(Vec::new())
    }

    async fn withdraw(&self, _: Attempt) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn note(&self, _: Note) -> Result<(), StoreError> {
        Ok(())
    }

    async fn notes(&self, _: OperationId, _: usize) -> Result<Vec<Noted>, StoreError> {
        Ok(Vec::new())
    }

    async fn watch(&self, _: OperationId) {
        pending().await
    }
}
