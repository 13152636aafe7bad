//! An outbox that takes its time, and fails now and then, before or after it did what it was asked.

use std::time::Duration;

use hapax_core::{
    Fence, Owner, StoreError,
    outbox::{
        Destination, Lag, Lane, Lease, Leases, Look, Outbox, Park, Parked, ParkedPage, Progress,
        Registered, Retired, Seen, Selection, Start, Writer,
    },
};
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

impl<O: Outbox> Outbox for Moody<O> {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        in_a_mood(self.0.register(destination, start)).await
    }

    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        in_a_mood(self.0.remove(name)).await
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        in_a_mood(self.0.destinations()).await
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        in_a_mood(self.0.set_paused(name, paused)).await
    }

    async fn lease(&self, lease: Lease) -> Result<Option<Leases>, StoreError> {
        in_a_mood(self.0.lease(lease)).await
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        in_a_mood(self.0.release(destination, owner, lanes)).await
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        in_a_mood(self.0.leave(destination, owner)).await
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        in_a_mood(self.0.look(destination, look)).await
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        in_a_mood(self.0.writers()).await
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: Progress,
    ) -> Result<Vec<Lane>, StoreError> {
        in_a_mood(self.0.acknowledge(destination, progress)).await
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        in_a_mood(self.0.park(park)).await
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        in_a_mood(self.0.parked(destination, selection, page)).await
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        in_a_mood(self.0.replay(destination, selection)).await
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        in_a_mood(self.0.forget(destination, selection)).await
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        in_a_mood(self.0.lag(destination)).await
    }

    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        in_a_mood(self.0.retire(limit)).await
    }

    fn ring(&self) {
        self.0.ring();
    }

    async fn rung(&self) {
        self.0.rung().await;
    }
}
