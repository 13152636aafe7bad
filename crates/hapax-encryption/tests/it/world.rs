//! A store in memory, and one tenant's operations in it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    Arrival, AttemptEnd, Body, Decision, Header, Key, Operation, Outcome, Owner, Policy, Record,
    RequestParts, RunMode, Salt, Scope, Store, StoreError, Tenant, Timestamp, decide, memory,
    settle,
    settle::Attempt,
    store::{Claim, DataKeyId, Write, Written},
};
use hapax_encryption::{
    DataKeyBytes, EncryptedStore, Encryption, LocalMasterKey, MasterKey, MasterKeyError, Wrapping,
};

pub(crate) const SENT: &[u8] = b"what the client sent";
pub(crate) const HEARD: &[u8] = b"what the client heard";

/// A store in memory under a clock that tests move.
pub(crate) struct World {
    pub(crate) rows: memory::Store,
    clock: Arc<AtomicI64>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(1_800_000_000_000_000));
        let hand = Arc::clone(&clock);
        let now = move || Timestamp::from_micros(hand.load(SeqCst));
        Self { rows: memory::Store::new(Salt::from_bytes([7; 32]), now), clock }
    }

    pub(crate) fn pass(&self, span: Duration) {
        self.clock.fetch_add(i64::try_from(span.as_micros()).unwrap(), SeqCst);
    }

    /// As a process opens it that was given this.
    pub(crate) async fn open(&self, encryption: Encryption) -> EncryptedStore<memory::Store> {
        EncryptedStore::new(self.rows.clone(), encryption).await.unwrap()
    }
}

pub(crate) fn master(number: u8) -> LocalMasterKey {
    LocalMasterKey::from_bytes(&[number; 32])
}

pub(crate) fn operation(tenant: &str, key: &str) -> Operation {
    let (tenant, scope) = (Tenant::parse(tenant).unwrap(), Scope::parse("POST /payments").unwrap());
    Operation::new(tenant, scope, Key::parse(key).unwrap())
}

pub(crate) fn outcome() -> Outcome {
    let value = Bytes::from_static(b"what a header said");
    let header = Header { name: "location".to_owned(), value };
    Outcome::new(201, vec![header], Body::Kept(Bytes::from_static(HEARD))).unwrap()
}

/// The claim of whoever comes first, with its request.
pub(crate) fn claim(store: &impl Store, operation: &Operation, mode: RunMode) -> Claim {
    let request = RequestParts { body: SENT, ..RequestParts::default() };
    let fingerprint = store.salt().tenant_key(operation.tenant()).fingerprint(&request);
    let arrival = Arrival { operation: operation.clone(), fingerprint, owner: Owner(7), mode };
    let decision = decide(Timestamp::ZERO, &arrival, None, &Policy::default());
    let Decision::Execute(claim) = decision else { panic!("an absent key must execute") };
    claim
}

pub(crate) fn keeping() -> RunMode {
    RunMode::Run { request: Some(Bytes::from_static(SENT)) }
}

pub(crate) fn queueing() -> RunMode {
    RunMode::Queue { request: Bytes::from_static(SENT) }
}

pub(crate) async fn begin(store: &impl Store, operation: &Operation, mode: RunMode) -> Attempt {
    let claim = claim(store, operation, mode);
    let attempt = Attempt { id: operation.id(), fence: claim.fence, owner: claim.owner };
    write(store, Write::Claim(claim)).await.unwrap();
    attempt
}

pub(crate) async fn complete(store: &impl Store, operation: &Operation) {
    let attempt = begin(store, operation, keeping()).await;
    finish(store, &attempt).await.unwrap();
}

pub(crate) async fn finish(store: &impl Store, attempt: &Attempt) -> Result<(), StoreError> {
    let end = settle(attempt, AttemptEnd::completed(outcome()), &Policy::default());
    write(store, Write::Settle(end)).await
}

/// Writes something that must count, unless the store fails.
pub(crate) async fn write(store: &impl Store, write: Write) -> Result<(), StoreError> {
    let written = store.commit(vec![write]).await.remove(0)?;
    assert!(matches!(written, Written::Done { .. }), "{written:?}");
    Ok(())
}

pub(crate) async fn load(store: &impl Store, of: &Operation) -> Result<Record, StoreError> {
    let loaded = store.load(vec![of.id()]).await.remove(0)?;
    Ok(*loaded.record.unwrap())
}

/// What clients would be told.
pub(crate) async fn told(store: &impl Store, of: &Operation) -> Body {
    load(store, of).await.unwrap().outcome().unwrap().body().clone()
}

pub(crate) fn heard() -> Body {
    Body::Kept(Bytes::from_static(HEARD))
}

/// A key service that can go away, and counts what it is asked for.
#[derive(Clone)]
pub(crate) struct Service {
    key: Arc<LocalMasterKey>,
    pub(crate) away: Arc<AtomicBool>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Service {
    pub(crate) fn new() -> Self {
        Self { key: Arc::new(master(9)), away: Arc::default(), asked: Arc::default() }
    }

    fn reach(&self) -> Result<(), MasterKeyError> {
        self.asked.fetch_add(1, SeqCst);
        if self.away.load(SeqCst) {
            let name = self.name().to_owned();
            return Err(MasterKeyError::Unavailable { name, cause: "nobody answers".into() });
        }
        Ok(())
    }
}

impl MasterKey for Service {
    fn name(&self) -> &str {
        self.key.name()
    }

    fn wrap<'a>(&'a self, id: &'a DataKeyId, key: &'a DataKeyBytes) -> Wrapping<'a, Bytes> {
        Box::pin(async move {
            self.reach()?;
            self.key.wrap(id, key).await
        })
    }

    fn unwrap<'a>(&'a self, id: &'a DataKeyId, wrapped: &'a [u8]) -> Wrapping<'a, DataKeyBytes> {
        Box::pin(async move {
            self.reach()?;
            self.key.unwrap(id, wrapped).await
        })
    }
}
