//! An outbox that takes its time, and fails now and then, before or after it did what it was asked.

use std::time::Duration;

use hapax_core::{StoreError, forward_outbox, outbox::OutboxLog};
use tokio::time::sleep;

/// How long a call takes at most, before and after it is done.
const LONGEST_MS: u64 = 40;
/// One call of so many fails.
const FAILS: u32 = 12;

/// Another outbox, in a mood. Chance is `fastrand`'s, so a seed repeats it.
#[derive(Clone)]
pub(crate) struct Moody<O>(pub(crate) O);

async fn in_a_mood<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    sleep(Duration::from_millis(fastrand::u64(0..LONGEST_MS))).await;
    if fastrand::u32(0..FAILS) == 0 {
        return Err(StoreError::unavailable("it is in a mood"));
    }
    let answer = call.await;
    sleep(Duration::from_millis(fastrand::u64(0..LONGEST_MS))).await;
    if fastrand::u32(0..FAILS) == 0 {
        return Err(StoreError::unconfirmed("it forgot what it said"));
    }
    answer
}

macro_rules! moody {
    ($self:ident, $method:ident($($argument:ident),*)) => {
        in_a_mood($self.0.$method($($argument),*)).await
    };
}

impl<O: OutboxLog> OutboxLog for Moody<O> {
    forward_outbox! {
        moody: register set_paused lease release leave look writers acknowledge park retire
    }

    fn ring(&self) {
        self.0.ring();
    }

    async fn rung(&self) {
        self.0.rung().await;
    }
}
