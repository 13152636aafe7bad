//! Our way: the engine over one of our stores.

use std::{ops::Range, time::Duration};

use hapax::{
    Admission, AttemptEnd, BeginRequest, Body, DynStore, Engine, Fence, Fingerprint, Key,
    Operation, OperationId, Options, Outcome, Owner, Policy, Record, RequestParts, RunMode, Scope,
    State, StateTag, StoreError, Tenant, Timestamp,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};

use super::{Arm, Batches, EffectCounter, StoredCount};
use crate::{
    error::BenchError,
    request::{self, SCOPE, TENANT},
};

/// How many records are read at once.
const PAGE: u64 = 500;

pub(crate) struct EngineArm {
    engine: Engine,
    tenant: Tenant,
    scope: Scope,
    outcome: Outcome,
    effects: EffectCounter,
}

impl EngineArm {
    pub(crate) fn start(store: impl Into<DynStore>, options: Options) -> Result<Self, BenchError> {
        let engine = Engine::start(store, options);
        let tenant = Tenant::parse(TENANT)?;
        Ok(Self {
            engine,
            tenant,
            scope: Scope::parse(SCOPE)?,
            outcome: Outcome::new(201, Vec::new(), Body::Kept(request::answer().into()))?,
            effects: EffectCounter::default(),
        })
    }

    /// The same, with answers of this size.
    pub(crate) fn answering(mut self, bytes: usize) -> Result<Self, BenchError> {
        let body = Body::Kept(request::answer_of(bytes).into());
        self.outcome = Outcome::new(201, Vec::new(), body)?;
        Ok(self)
    }

    /// What a front end makes of the request with this number.
    pub(crate) fn ask(&self, number: u64) -> Result<BeginRequest<'static>, BenchError> {
        let key = Key::parse(request::key(number))?;
        Ok(BeginRequest {
            operation: Operation::new(self.tenant.clone(), self.scope.clone(), key),
            request: self.fingerprint(number).into(),
            mode: RunMode::Run { request: None },
            policy: Policy::default(),
        })
    }

    fn fingerprint(&self, number: u64) -> Fingerprint {
        let body = request::body(number);
        let parts = RequestParts {
            method: b"POST",
            path: b"/payments",
            body: body.as_bytes(),
            ..RequestParts::default()
        };
        self.engine.tenant_keys().get(&self.tenant).fingerprint(&parts)
    }

    /// The store's clock.
    pub(crate) async fn now(&self) -> Result<Timestamp, BenchError> {
        let id = self.ask(0)?.operation.id();
        let loaded = self.engine.store().load(vec![id]).await.pop();
        Ok(loaded.map_or(Ok(Timestamp::ZERO), |loaded| Ok::<_, StoreError>(loaded?.now))?)
    }

    /// The record that the request with this number leaves behind, as if it had been made then.
    pub(crate) fn finished(
        &self,
        number: u64,
        created_at: Timestamp,
    ) -> Result<Record, BenchError> {
        const TOOK: Duration = Duration::from_millis(3);
        let BeginRequest { operation, policy, .. } = self.ask(number)?;
        Ok(Record {
            operation,
            fingerprint: self.fingerprint(number),
            fence: Fence::FIRST,
            owner: Owner::draw(),
            recovery: policy.recovery(),
            created_at,
            changed_at: created_at.plus(TOOK),
            expires_at: created_at.plus(policy.retention().window),
            tombstone: policy.retention().tombstone,
            state: State::Completed { outcome: self.outcome.clone() },
        })
    }

    /// How many of the requests with these numbers are stored as completed by their first attempt.
    pub(crate) async fn completed(&self, numbers: Range<u64>) -> Result<u64, BenchError> {
        let (mut completed, mut next) = (0, numbers.start);
        while next < numbers.end {
            let page = next..numbers.end.min(next + PAGE);
            next = page.end;
            let ids: Result<Vec<_>, _> =
                page.map(|number| Ok::<_, BenchError>(self.ask(number)?.operation.id())).collect();
            for loaded in self.engine.store().load(ids?).await {
                let Some(record) = loaded?.record else { continue };
                let first = record.fence == Fence::FIRST && record.tag() == StateTag::Completed;
                completed += u64::from(first && record.outcome() == Some(&self.outcome));
            }
        }
        Ok(completed)
    }

    /// One page of what is stored, each record read as the store reads it.
    pub(crate) async fn page(&self) -> Result<usize, BenchError> {
        let page = Page { after: None, limit: PAGE_RECORDS_MAX };
        let records = self.engine.store().list(Filter::default(), page).await?;
        let read = records.into_iter().map(|listed| listed.summary);
        Ok(read.collect::<Result<Vec<_>, _>>()?.len())
    }

    /// Asks for a finished operation, and checks that the answer is the one that was stored.
    pub(crate) async fn replay(&self, ask: &BeginRequest<'_>) -> Result<(), BenchError> {
        let begun = self.engine.begin(ask).await?;
        if let Admission::Replay(record) = &begun
            && record.outcome() == Some(&self.outcome)
        {
            return Ok(());
        }
        Err(BenchError::NotReplayed { found: name(&begun) })
    }
}

impl Arm for EngineArm {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let begun = self.engine.begin(&self.ask(number)?).await?;
        let Admission::Execute(permit) = begun else {
            return Err(BenchError::NotFresh { found: name(&begun) });
        };
        self.effects.happened();
        permit.settle(AttemptEnd::completed(self.outcome.clone())).await?;
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let mut stored = StoredCount { completed: 0, others: 0 };
        let mut after: Option<OperationId> = None;
        loop {
            let page = Page { after, limit: PAGE_RECORDS_MAX };
            let records = self.engine.store().list(Filter::default(), page).await?;
            let Some(last) = records.last() else { return Ok(stored) };
            after = Some(last.id);
            for listed in records {
                let record = listed.summary?;
                let first = record.stamp.fence == Fence::FIRST;
                match record.stamp.tag {
                    StateTag::Completed if first => stored.completed += 1,
                    StateTag::Completed
                    | StateTag::Pending
                    | StateTag::Running
                    | StateTag::Failed
                    | StateTag::InDoubt
                    | StateTag::Released
                    | StateTag::Buried => stored.others += 1,
                }
            }
        }
    }

    /// Waits until nothing runs any more.
    async fn close(&self) {
        self.engine.shut_down(Duration::from_secs(10)).await;
    }

    fn purged(&self) -> u64 {
        self.engine.stats().purged
    }

    fn batches(&self) -> Option<Batches> {
        let stats = self.engine.stats();
        Some(Batches { writes: stats.batched_writes, commits: stats.batches })
    }
}

fn name(begun: &Admission) -> &'static str {
    match begun {
        Admission::Execute(_) => "the right to run it",
        Admission::TakenOver { .. } => "a takeover",
        Admission::Queued(_) => "a place in the queue",
        Admission::Replay(_) => "another answer than the one that was stored",
        Admission::Busy { .. } => "busy",
        Admission::InDoubt { .. } => "in doubt",
        Admission::Mismatch(_) => "a mismatch",
        Admission::Gone { .. } => "gone",
    }
}
