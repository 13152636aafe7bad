//! The ways to make a request happen once.

pub(super) mod engine;
pub(super) mod postgres_baseline;
pub(super) mod redis;
mod resp;
pub(super) mod sqlite_baseline;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) use self::resp::RedisError;
use super::error::BenchError;

/// One way, set up and ready to be called by many at once.
pub(super) trait Arm: Send + Sync + 'static {
    /// Claims the key with this number, has the effect, settles. Durable when it returns.
    fn request(&self, number: u64) -> impl Future<Output = Result<(), BenchError>> + Send;

    /// How often the effect was had.
    fn effects(&self) -> &EffectCounter;

    /// Counts what is stored.
    fn stored(&self) -> impl Future<Output = Result<StoredCount, BenchError>> + Send;

    /// How many writes and how many commits there were so far, where they differ.
    fn batches(&self) -> Option<Batches> {
        None
    }

    /// The process at the other end, if there is one of its own.
    fn server(&self) -> Option<u32> {
        None
    }

    /// How many requests were answered from what was stored, without an effect.
    fn replays(&self) -> u64 {
        0
    }

    /// How many records were removed so far because they are past retention.
    fn purged(&self) -> u64 {
        0
    }

    /// Ends what goes on in the background.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Where effects are counted.
#[derive(Debug, Default)]
pub(super) struct EffectCounter(AtomicU64);

impl EffectCounter {
    pub(super) fn happened(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What a way has stored, counted by reading all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredCount {
    /// Keys that are completed by their first attempt.
    pub(super) completed: u64,
    /// Everything else.
    pub(super) others: u64,
}

/// Writes and the commits that carried them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batches {
    pub(super) writes: u64,
    pub(super) commits: u64,
}

/// Compares what was acknowledged with the effects and with what is stored; the sentence says what
/// is wrong.
pub(super) async fn audit<A: Arm>(
    arm: &A,
    acknowledged: u64,
) -> Result<Option<String>, BenchError> {
    let acknowledged = acknowledged.saturating_sub(arm.replays());
    let (effects, StoredCount { completed, others }) = (arm.effects().count(), arm.stored().await?);
    let right = acknowledged == effects && acknowledged == completed && others == 0;
    Ok((!right).then(|| {
        format!(
            "{acknowledged} requests were acknowledged, but {effects} effects were had, \
             {completed} keys are completed and {others} are not"
        )
    }))
}
