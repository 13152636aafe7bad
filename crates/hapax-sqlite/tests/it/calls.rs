use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Body, Fence, Fingerprint, Key, Operation, Outcome, Owner, Record, Recovery, Scope, Store as _,
    StoreError, Tenant,
    store::{By, Claim, Entry, Over, Settle, Settlement, Write, Written},
};
use hapax_sqlite::Store;

pub(crate) fn operation(key: &str) -> Operation {
    let parsed = (Tenant::parse("acme"), Scope::parse("POST /payments"), Key::parse(key));
    let (Ok(tenant), Ok(scope), Ok(key)) = parsed else { panic!("{key:?} is a key") };
    Operation::new(tenant, scope, key)
}

pub(crate) fn first_claim(key: &str) -> Claim {
    Claim {
        operation: operation(key),
        fingerprint: Fingerprint::from_bytes([7; Fingerprint::BYTES]),
        over: Over::Nothing,
        fence: Fence::FIRST,
        owner: Owner(1),
        recovery: Recovery::Hold,
        retention: Duration::from_secs(24 * 60 * 60),
        tombstone: Duration::ZERO,
        entry: Entry::Run { lease: Duration::from_secs(30), request: None },
    }
}

pub(crate) fn completion(key: &str, body: &[u8]) -> Settle {
    let body = Body::Kept(Bytes::copy_from_slice(body));
    Settle {
        id: operation(key).id(),
        by: By::Owner { fence: Fence::FIRST, owner: Owner(1) },
        to: Settlement::Completed(Outcome::new(201, Vec::new(), body).expect("within the limits")),
        keep: Duration::ZERO,
    }
}

pub(crate) async fn claim(store: &Store, key: &str) -> Result<Written, StoreError> {
    let batch = vec![Write::Claim(first_claim(key))];
    store.commit(batch).await.remove(0)
}

pub(crate) async fn complete(store: &Store, key: &str, body: &[u8]) -> Result<Written, StoreError> {
    let batch = vec![Write::Settle(completion(key, body))];
    store.commit(batch).await.remove(0)
}

pub(crate) async fn load(store: &Store, key: &str) -> Result<Option<Box<Record>>, StoreError> {
    store.load(vec![operation(key).id()]).await.remove(0).map(|loaded| loaded.record)
}
