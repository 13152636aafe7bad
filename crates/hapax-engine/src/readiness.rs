//! Whether the store takes writes, found out by writing.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Attempt, Fence, InvalidName, Key, Operation, Recovery, RequestParts, Scope, StoreError, Tenant,
    store::{Claim, Entry, Over, Write, Written},
};
use tokio::{sync::Mutex, time::Instant};

use crate::engine::Inner;

/// For how long what was found out is believed, so that asking costs a store next to nothing.
pub const BELIEVED_FOR: Duration = Duration::from_secs(2);
/// Whose operations these are, and of which kind; people see one only if a process died over it.
const TENANT: &str = "hapax";
const SCOPE: &str = "readiness";
/// How long such a record is left to itself.
const LEASE: Duration = Duration::from_secs(10);
/// How long it is kept after that.
const RETENTION: Duration = Duration::from_secs(60);

/// What was found out last.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Arc<Mutex<Option<Checked>>>);

#[derive(Debug)]
struct Checked {
    at: Instant,
    found: Result<(), StoreError>,
}

/// As found out within [`BELIEVED_FOR`]; otherwise by writing, one writer at a time.
pub(crate) async fn takes_writes(inner: &Arc<Inner>) -> Result<(), StoreError> {
    let mut checked = Arc::clone(&inner.readiness.0).lock_owned().await;
    if let Some(last) = &*checked
        && last.at.elapsed() < BELIEVED_FOR
    {
        return last.found.clone();
    }
    let inner = Arc::clone(inner);
    // In a task of its own: whoever asks may lose patience, and a write is not stopped half-way.
    let checking = tokio::spawn(async move {
        let found = write(&inner).await;
        *checked = Some(Checked { at: Instant::now(), found: found.clone() });
        found
    });
    checking.await.unwrap_or_else(|panicked| Err(StoreError::unavailable(panicked)))
}

/// Claims an operation that is nobody's, as any is claimed, and takes it back.
async fn write(inner: &Inner) -> Result<(), StoreError> {
    let claim = claim(inner)?;
    let attempt = Attempt { id: claim.operation.id(), fence: claim.fence, owner: claim.owner };
    match inner.store.commit(vec![Write::Claim(claim)]).await.pop() {
        Some(Ok(Written::Done { .. })) => inner.store.withdraw(attempt).await.map(|_| ()),
        Some(Ok(Written::Refused { .. })) | None => {
            Err(StoreError::unavailable("the store gave no answer to a new claim"))
        }
        Some(Err(error)) => Err(error),
    }
}

fn claim(inner: &Inner) -> Result<Claim, StoreError> {
    let invalid = |error: InvalidName| StoreError::unavailable(error);
    let tenant = Tenant::parse(TENANT).map_err(invalid)?;
    let scope = Scope::parse(SCOPE).map_err(invalid)?;
    // Drawn anew, so that processes do not meet.
    let key = format!("{:016x}{:016x}", inner.random(), inner.random());
    let fingerprint = inner.store.salt().tenant_key(&tenant).fingerprint(&RequestParts::default());
    Ok(Claim {
        operation: Operation::new(tenant, scope, Key::parse(key).map_err(invalid)?),
        fingerprint,
        over: Over::Nothing,
        fence: Fence::FIRST,
        owner: inner.new_owner(),
        // Whatever becomes of this process, a sweeper may release it.
        recovery: Recovery::Resend,
        retention: RETENTION,
        tombstone: Duration::ZERO,
        entry: Entry::Run { lease: LEASE, request: None },
    })
}
