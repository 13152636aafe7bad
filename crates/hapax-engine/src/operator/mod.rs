//! What a person does with records: list, look, understand, release, resolve.
//!
//! An [`Operator`] needs a store and nothing else: no engine has to run, and engines that do run,
//! in this process or in others, need not be told. That is safe because
//!
//! - an engine keeps only finished records in memory, and an operator never changes those;
//! - everything else an engine knows is decided again by the store: a change is written only over
//!   the very stamp that was read, and an owner whose record was changed loses its own write;
//! - waiters ask the store again.

mod change;
mod explain;
mod quarantine;
mod resolution;
mod show;

use hapax_core::{
    DynStore, OperationId, StoreError, StoredStep,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Listed, Loaded, Page},
};

pub use self::{
    change::{ChangeError, Changed, Order, Refusal},
    explain::{ExpectedAnswer, Explanation},
    quarantine::LiftError,
    resolution::{Change, Resolution},
    show::{MomentKind, Shown, TimelineEntry},
};

/// A person at the store. Every change they make leaves a note before it and one after it.
///
/// ```
/// use hapax_core::{AttemptEnd, StateTag, store::{Filter, Page}};
/// use hapax_engine::{Admission, operator::Operator};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # use hapax_core::{Key, Operation, Scope, Tenant};
/// # let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// # let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// # let request = hapax_core::RequestParts { body: b"100", ..Default::default() }.into();
/// # let mode = hapax_core::RunMode::Run { request: None };
/// # let policy = hapax_core::Policy::default();
/// # let ask = hapax_engine::BeginRequest { operation, request, mode, policy };
/// # let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
/// let Admission::Execute(permit) = engine.begin(&ask).await? else { return Ok(()) };
/// permit.settle(AttemptEnd::Unanswered).await?;
///
/// let operator = Operator::new(engine.store().clone());
/// let doubts = Filter { state: Some(StateTag::InDoubt), ..Filter::default() };
/// let listing = operator.list(doubts, Page { after: None, limit: 100 }).await?;
/// assert_eq!(listing.listed.len(), 1);
/// println!("{}", operator.show(listing.listed[0].id).await?.explain().advice);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Operator {
    store: DynStore,
}

/// One page of a listing.
#[derive(Debug)]
pub struct Listing {
    /// The records, in order of their id; what cannot be read is listed as such.
    pub listed: Vec<Listed>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<OperationId>,
}

impl Operator {
    /// An operator on this store.
    pub fn new(store: impl Into<DynStore>) -> Self {
        Self { store: store.into() }
    }

    /// One page of the records the filter lets through.
    pub async fn list(&self, filter: Filter, page: Page) -> Result<Listing, StoreError> {
        let limit = page.limit.min(PAGE_RECORDS_MAX);
        let listed = self.store.list(filter, Page { limit, ..page }).await?;
        let is_full = listed.len() == limit;
        let next = listed.last().filter(|_| is_full).map(|listed| listed.id);
        Ok(Listing { listed, next })
    }

    /// Everything known about an operation: its record, if there is one, and what people did to it.
    pub async fn show(&self, id: OperationId) -> Result<Shown, StoreError> {
        let kept = self.store.notes(id, PAGE_RECORDS_MAX).await?;
        let (history, notes) = kept.into_iter().partition(|noted| noted.note.deed.is_of_hapax());
        let Loaded { mut now, record } = self.load(id).await?;
        if record.as_ref().is_some_and(|record| record.is_expired(now)) {
            // As an engine would judge it: what seems to be expired may be a clock that jumped.
            now = now.min(self.store.clock().await?.trusted());
        }
        Ok(Shown { id, now, record: record.map(|record| *record), notes, history })
    }

    /// The finished steps of an operation's present life, in order.
    pub async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.store.steps(id).await
    }

    async fn load(&self, id: OperationId) -> Result<Loaded, StoreError> {
        let unanswered = || Err(StoreError::unavailable("the store did not answer for this id"));
        self.store.load(vec![id]).await.pop().unwrap_or_else(unanswered)
    }
}
