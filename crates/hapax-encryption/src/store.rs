//! The store around a store.

use std::{fmt, sync::Arc};

use hapax_core::{
    Attempt, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep, Tenant,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    store::{Filter, KeyStorage, Listed, Loaded, Page, Purged, Write, Written},
};
use quick_cache::sync;

use crate::{
    binding::Binding,
    contents,
    data_keys::{DataKeys, OpeningKey},
    encryption::{Encryption, EncryptionError},
};

/// Operations whose tenant is remembered, so that their end can be sealed without a look at the store.
const OPERATIONS_MAX: usize = 1 << 16;
/// Times the steps of an operation are read again because it began a new life meanwhile.
const LIVES_MAX: usize = 4;

/// Any store, with what users sent and were answered encrypted in it.
///
/// Records from before, which are clear, go on being read. What cannot be opened is an error, never served
/// and never taken for absent; what was sealed with a key that was erased reads as not kept.
///
/// A claim is written only if its tenant has a data key at hand, so that nothing is run whose answer could
/// not be stored.
pub struct EncryptedStore<S> {
    inner: S,
    keys: Arc<DataKeys>,
    tenants: sync::Cache<OperationId, Tenant>,
}

impl<S: Store + KeyStorage> EncryptedStore<S> {
    /// Around this store, whose data keys must be wrapped by the master keys given. Must be called on a
    /// tokio runtime.
    pub async fn new(inner: S, encryption: Encryption) -> Result<Self, EncryptionError> {
        encryption.fits(&inner).await?;
        let keys = DataKeys::start(encryption);
        Ok(Self { inner, keys, tenants: sync::Cache::new(OPERATIONS_MAX) })
    }

    /// What the store holds as it is, ciphertext included.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The write with its contents sealed for its tenant.
    async fn sealed(&self, write: Write) -> Result<Write, AnsweredEarly> {
        match write {
            Write::Claim(claim) => {
                let tenant = claim.operation.tenant();
                let key = self.keys.to_seal(&self.inner, tenant).await?;
                self.remember(claim.operation.id(), tenant);
                Ok(Write::Claim(contents::seal_claim(&key, claim)?))
            }
            Write::Settle(settle) if settle.to.outcome().is_some() => {
                let tenant = self.tenant_of(settle.id).await?;
                let key = self.keys.to_seal(&self.inner, &tenant).await?;
                Ok(Write::Settle(contents::seal_settle(&key, settle)?))
            }
            Write::Step(keep) => {
                let tenant = self.tenant_of(keep.id).await?;
                let key = self.keys.to_seal(&self.inner, &tenant).await?;
                Ok(Write::Step(contents::seal_step(&key, keep)?))
            }
            Write::Settle(_) | Write::Renew(_) => Ok(write),
        }
    }

    fn remember(&self, id: OperationId, tenant: &Tenant) {
        if self.tenants.peek(&id).is_none() {
            self.tenants.insert(id, tenant.clone());
        }
    }

    /// Whose operation it is: an id always belongs to the same tenant.
    async fn tenant_of(&self, id: OperationId) -> Result<Tenant, AnsweredEarly> {
        if let Some(tenant) = self.tenants.get(&id) {
            return Ok(tenant);
        }
        let loaded = self.inner.load(vec![id]).await.pop();
        let loaded = loaded.unwrap_or_else(|| Err(StoreError::unavailable("no answer")));
        let Loaded { now, record } = loaded.map_err(nothing_written)?;
        let Some(record) = record else {
            return Err(AnsweredEarly(Ok(Written::Refused { now, record: None })));
        };
        self.remember(id, record.operation.tenant());
        Ok(record.operation.tenant().clone())
    }

    async fn opened(&self, record: Record) -> Result<Record, StoreError> {
        let Some(version) = contents::key_of(&record)? else { return Ok(record) };
        let tenant = record.operation.tenant();
        match self.keys.to_open(&self.inner, tenant, version).await? {
            OpeningKey::Usable(key) => contents::open_record(&key, record),
            OpeningKey::Erased => contents::without_contents(record),
        }
    }

    async fn answered(&self, answer: Result<Written, StoreError>) -> Result<Written, StoreError> {
        match answer? {
            Written::Refused { now, record: Some(record) } => {
                let record = self.opened(*record).await.map_err(nothing_written)?;
                self.remember(record.operation.id(), record.operation.tenant());
                Ok(Written::Refused { now, record: Some(Box::new(record)) })
            }
            answer @ (Written::Done { .. } | Written::Refused { record: None, .. }) => Ok(answer),
        }
    }

    /// The steps as the inner store tells them, and the record of the life they belong to. Between two calls
    /// a new life may have begun.
    async fn steps_of_life(
        &self,
        id: OperationId,
    ) -> Result<Option<(Record, Vec<StoredStep>)>, StoreError> {
        let mut before = self.record_now(id).await?;
        for _ in 0..LIVES_MAX {
            let steps = self.inner.steps(id).await?;
            let after = self.record_now(id).await?;
            match (before, after) {
                (Some(before), Some(after)) if before.created_at == after.created_at => {
                    return Ok(Some((after, steps)));
                }
                (None, None) => return Ok(None),
                (_, after) => before = after,
            }
        }
        Err(StoreError::unavailable("the operation begins one life after another"))
    }

    async fn record_now(&self, id: OperationId) -> Result<Option<Record>, StoreError> {
        let loaded = self.inner.load(vec![id]).await.pop();
        let loaded = loaded.unwrap_or_else(|| Err(StoreError::unavailable("no answer")))?;
        Ok(loaded.record.map(|record| *record))
    }
}

impl<S: Store + KeyStorage> Store for EncryptedStore<S> {
    fn salt(&self) -> Salt {
        self.inner.salt()
    }

    fn lanes(&self) -> usize {
        self.inner.lanes()
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        let mut answers: Vec<Option<Result<Written, StoreError>>> = Vec::new();
        let mut sealed = Vec::with_capacity(batch.len());
        for write in batch {
            match self.sealed(write).await {
                Ok(write) => {
                    sealed.push(write);
                    answers.push(None);
                }
                Err(AnsweredEarly(answer)) => answers.push(Some(answer)),
            }
        }
        let written = if sealed.is_empty() { vec![] } else { self.inner.commit(sealed).await };
        let mut written = written.into_iter();
        let mut all = Vec::with_capacity(answers.len());
        for answer in answers {
            all.push(match (answer, &mut written) {
                (Some(answer), _) => answer,
                (None, written) => match written.next() {
                    Some(answer) => self.answered(answer).await,
                    None => Err(StoreError::unconfirmed("the store gave too few answers")),
                },
            });
        }
        all
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.inner.withdraw(attempt).await
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let loaded = self.inner.load(ids).await;
        let mut opened = Vec::with_capacity(loaded.len());
        for loaded in loaded {
            opened.push(match loaded {
                Ok(Loaded { now, record: Some(record) }) => {
                    self.remember(record.operation.id(), record.operation.tenant());
                    let record = self.opened(*record).await;
                    record.map(|record| Loaded { now, record: Some(Box::new(record)) })
                }
                Ok(nothing @ Loaded { record: None, .. }) => Ok(nothing),
                Err(error) => Err(error),
            });
        }
        opened
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        let Some((record, steps)) = self.steps_of_life(id).await? else { return Ok(Vec::new()) };
        let tenant = record.operation.tenant();
        let mut opened = Vec::with_capacity(steps.len());
        for StoredStep { at, step } in steps {
            let Some(version) = contents::version_of(step.result())? else {
                opened.push(StoredStep { at, step });
                continue;
            };
            let binding = Binding::step(id, record.created_at, &step);
            let step = match self.keys.to_open(&self.inner, tenant, version).await? {
                OpeningKey::Usable(key) => contents::open_step(&key, &binding, step)?,
                OpeningKey::Erased => return Err(StoreError::damaged(ERASED_STEP)),
            };
            opened.push(StoredStep { at, step });
        }
        Ok(opened)
    }

    /// What cannot be opened is left for whoever loads it, as other records are that cannot be read.
    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        let mut opened = Vec::new();
        for record in self.inner.overdue(limit).await? {
            let id = record.operation.id();
            self.remember(id, record.operation.tenant());
            match self.opened(record).await {
                Ok(record) => opened.push(record),
                Err(error) => {
                    tracing::warn!(operation = %id, %error, "an overdue record cannot be decrypted");
                }
            }
        }
        Ok(opened)
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

const ERASED_STEP: &str = "the result of a step was erased with the keys of its tenant";

impl<S> fmt::Debug for EncryptedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedStore").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// A write that is answered without being handed on.
struct AnsweredEarly(Result<Written, StoreError>);

impl From<StoreError> for AnsweredEarly {
    fn from(error: StoreError) -> Self {
        Self(Err(error))
    }
}

/// Whatever went wrong with a look, the write it was for was not made.
fn nothing_written(error: StoreError) -> StoreError {
    match error {
        StoreError::Unconfirmed(cause) => StoreError::Unavailable(cause),
        StoreError::Unavailable(_) | StoreError::Damaged(_) | StoreError::TooNew(_) => error,
    }
}
