//! The suite is itself tested: stores that break the contract fail it, and no case is forgotten.

use std::sync::Arc;

use hapax_core::{
    Attempt, Faults, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    store::{By, Filter, Listed, Loaded, Over, Page, Purged, Write, Written},
};
use hapax_verify::conformance::{Backend, Damage, claim, concurrency, faults, lease, run, settle};

use crate::memory::{Memory, Unreliable};

/// What a store answers to a batch.
type Answers = Vec<Result<Written, StoreError>>;

/// A promise of the contract that a store does not keep.
trait Flaw: Send + Sync + 'static {
    /// Changes a batch before it is committed.
    fn before(_: &Unreliable, batch: Vec<Write>) -> impl Future<Output = Vec<Write>> + Send {
        async { batch }
    }

    /// Changes the answers to a batch.
    fn after(answers: Answers) -> Answers {
        answers
    }
}

/// The reference with a flaw.
struct Flawed<F> {
    inner: Arc<Memory>,
    flaw: std::marker::PhantomData<F>,
}

struct FlawedStore<F> {
    inner: Unreliable,
    flaw: std::marker::PhantomData<F>,
}

impl<F: Flaw> Backend for Flawed<F> {
    type Store = FlawedStore<F>;

    const PLACES: &'static [&'static str] = Memory::PLACES;

    async fn create() -> Self {
        Self { inner: Arc::new(Memory::create().await), flaw: std::marker::PhantomData }
    }

    async fn open(&self, faults: Faults) -> FlawedStore<F> {
        FlawedStore { inner: self.inner.open(faults).await, flaw: std::marker::PhantomData }
    }

    async fn step_clock(&self, micros: i64) {
        self.inner.step_clock(micros).await;
    }

    async fn damage(&self, id: OperationId, damage: Damage) {
        self.inner.damage(id, damage).await;
    }
}

impl<F: Flaw> Store for FlawedStore<F> {
    fn salt(&self) -> Salt {
        self.inner.salt()
    }

    fn lanes(&self) -> usize {
        self.inner.lanes()
    }

    async fn commit(&self, batch: Vec<Write>) -> Answers {
        let batch = F::before(&self.inner, batch).await;
        F::after(self.inner.commit(batch).await)
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        self.inner.load(ids).await
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.inner.steps(id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inner.overdue(limit).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.inner.purge(limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.inner.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.inner.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.inner.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.inner.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.inner.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.inner.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.inner.withdraw(attempt).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.inner.note(note).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.inner.notes(id, limit).await
    }

    async fn watch(&self, id: OperationId) {
        self.inner.watch(id).await;
    }
}

async fn found(store: &Unreliable, id: OperationId) -> Option<Box<Record>> {
    store.load(vec![id]).await.pop()?.ok()?.record
}

/// Settles whoever asks.
struct FenceIgnored;

impl Flaw for FenceIgnored {
    async fn before(store: &Unreliable, mut batch: Vec<Write>) -> Vec<Write> {
        for write in &mut batch {
            let Write::Settle(settle) = write else { continue };
            if let (By::Owner { fence, owner }, Some(record)) =
                (&mut settle.by, found(store, settle.id).await)
            {
                (*fence, *owner) = (record.fence, record.owner);
            }
        }
        batch
    }
}

/// Lets an owner pass by its fence alone.
struct OwnerIgnored;

impl Flaw for OwnerIgnored {
    async fn before(store: &Unreliable, mut batch: Vec<Write>) -> Vec<Write> {
        for write in &mut batch {
            let Write::Settle(settle) = write else { continue };
            if let (By::Owner { owner, .. }, Some(record)) =
                (&mut settle.by, found(store, settle.id).await)
            {
                *owner = record.owner;
            }
        }
        batch
    }
}

/// Compares what a takeover expects, but not in the same step as it writes.
struct TakeoverReadsFirst;

impl Flaw for TakeoverReadsFirst {
    async fn before(store: &Unreliable, mut batch: Vec<Write>) -> Vec<Write> {
        for write in &mut batch {
            let Write::Claim(claim) = write else { continue };
            let (Over::Abandoned(stamp), Some(record)) =
                (claim.over, found(store, claim.operation.id()).await)
            else {
                continue;
            };
            tokio::task::yield_now().await;
            if record.stamp() == stamp
                && let Some(record) = found(store, claim.operation.id()).await
            {
                claim.over = Over::Abandoned(record.stamp());
            }
        }
        batch
    }
}

/// Compares an onlooker's stamp without the end of the lease.
struct LeaseEndIgnored;

impl Flaw for LeaseEndIgnored {
    async fn before(store: &Unreliable, mut batch: Vec<Write>) -> Vec<Write> {
        for write in &mut batch {
            let Write::Settle(settle) = write else { continue };
            if let (By::Onlooker(stamp), Some(record)) =
                (&mut settle.by, found(store, settle.id).await)
            {
                stamp.until = record.until();
            }
        }
        batch
    }
}

/// Says that nothing was written whenever it does not know.
struct NeverUnconfirmed;

impl Flaw for NeverUnconfirmed {
    fn after(answers: Answers) -> Answers {
        let hide = |error| match error {
            StoreError::Unconfirmed(cause) => StoreError::Unavailable(cause),
            StoreError::Unavailable(_) | StoreError::Damaged(_) | StoreError::TooNew(_) => error,
        };
        answers.into_iter().map(|answer| answer.map_err(hide)).collect()
    }
}

/// Answers in the order it likes.
struct OutOfOrder;

impl Flaw for OutOfOrder {
    fn after(mut answers: Answers) -> Answers {
        answers.sort_by_key(|answer| matches!(answer, Ok(Written::Refused { .. })));
        answers
    }
}

#[test]
#[should_panic(expected = "has no say over")]
fn a_store_that_ignores_the_fence_fails() {
    run(settle::a_stale_owner_changes_nothing::<Flawed<FenceIgnored>>());
}

#[test]
#[should_panic(expected = "has no say over")]
fn a_store_that_ignores_the_owner_fails() {
    run(settle::an_owner_that_slept_through_a_whole_life_is_refused::<Flawed<OwnerIgnored>>());
}

#[test]
#[should_panic(expected = "left == right")]
fn a_store_whose_takeover_reads_before_it_writes_fails() {
    run(concurrency::racing_takeovers_have_one_winner::<Flawed<TakeoverReadsFirst>>());
}

#[test]
#[should_panic(expected = "has no say over")]
fn a_store_that_ignores_the_end_of_a_lease_fails() {
    run(lease::a_renewed_lease_defeats_an_onlooker::<Flawed<LeaseEndIgnored>>());
}

#[test]
#[should_panic(expected = "unavailable, but something was written")]
fn a_store_that_hides_what_it_does_not_know_fails() {
    run(faults::answers_agree_with_what_is_stored_wherever_it_fails::<Flawed<NeverUnconfirmed>>());
}

#[test]
#[should_panic(expected = "the answer to another write")]
fn a_store_that_answers_out_of_order_fails() {
    run(claim::a_mixed_batch_is_answered_in_order::<Flawed<OutOfOrder>>());
}

#[test]
fn every_case_is_in_the_list() {
    let list = include_str!("../../src/conformance/mod.rs");
    let files = [
        include_str!("../../src/conformance/claim.rs"),
        include_str!("../../src/conformance/concurrency.rs"),
        include_str!("../../src/conformance/damage.rs"),
        include_str!("../../src/conformance/decisions.rs"),
        include_str!("../../src/conformance/faults.rs"),
        include_str!("../../src/conformance/lease.rs"),
        include_str!("../../src/conformance/listing.rs"),
        include_str!("../../src/conformance/notes.rs"),
        include_str!("../../src/conformance/retention.rs"),
        include_str!("../../src/conformance/settle.rs"),
    ];
    let cases = files.iter().flat_map(|file| file.lines()).filter_map(|line| {
        line.strip_prefix("pub async fn ")
            .and_then(|rest| rest.split_once('<'))
            .map(|(name, _)| name)
    });
    let mut count = 0;
    for case in cases {
        assert!(list.lines().any(|line| line.trim() == case), "{case} is never run");
        count += 1;
    }
    assert!(count > 70, "the cases are written as this test expects them");
}
