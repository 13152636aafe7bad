//! Writes back what a store acknowledged and then lost.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Doubt, OperationId, Record, State, StoreError,
    incarnation::{Missing, missing},
    limits::{LEASE_MAX, LEASE_MIN},
    store::{By, Claim, Entry, Loaded, Over, Settle, Settlement, Write, Written},
};

use crate::engine::Inner;

/// Records that are compared at once.
const COMPARED_MAX: usize = 256;
/// The lease of a claim whose end is written at once.
const LEASE: Duration = Duration::from_secs(30);

/// Has the store have these again; says how many it had not. To be done while nothing else is written.
///
/// What is done twice is done once: a record that is there is left as it is.
pub(crate) async fn restore(inner: &Inner, told: &[Arc<Record>]) -> Result<usize, StoreError> {
    let mut restored = 0;
    for told in told.chunks(COMPARED_MAX) {
        let ids: Vec<OperationId> = told.iter().map(|record| record.operation.id()).collect();
        for (record, loaded) in told.iter().zip(inner.store.load(ids).await) {
            restored += usize::from(restore_one(inner, record, &loaded?).await?);
        }
    }
    Ok(restored)
}

async fn restore_one(inner: &Inner, told: &Record, loaded: &Loaded) -> Result<bool, StoreError> {
    let id = told.operation.id();
    match missing(told, loaded.record.as_deref(), loaded.now) {
        Missing::Nothing => return Ok(false),
        Missing::Claim(over) => write(inner, Write::Claim(claim(told, over))).await?,
        Missing::End => {}
    }
    if let Some(to) = end(told, inner.flights.get(id).is_some()) {
        let by = By::Owner { fence: told.fence, owner: told.owner };
        let keep = told.expires_at.after(told.created_at);
        write(inner, Write::Settle(Settle { id, by, to, keep })).await?;
    }
    inner.counters.restored.one();
    let (fence, state) = (told.fence.get(), told.tag().as_str());
    tracing::warn!(operation = %id, fence, state, "written back: the store had lost it");
    Ok(true)
}

/// The claim under which it was acknowledged, over what is there.
fn claim(told: &Record, over: Over) -> Claim {
    let entry = match &told.state {
        State::Pending { pick_up_by, request } => {
            let pick_up = pick_up_by.after(told.changed_at).clamp(LEASE_MIN, LEASE_MAX);
            Entry::Queue { pick_up, request: request.clone() }
        }
        State::Running { lease_until, request } => {
            let lease = lease_until.after(told.changed_at).clamp(LEASE_MIN, LEASE_MAX);
            Entry::Run { lease, request: request.clone() }
        }
        State::InDoubt { request, .. } => Entry::Run { lease: LEASE, request: request.clone() },
        State::Completed { .. } | State::Failed { .. } | State::Released | State::Buried => {
            Entry::Run { lease: LEASE, request: None }
        }
    };
    Claim {
        operation: told.operation.clone(),
        fingerprint: told.fingerprint,
        over,
        fence: told.fence,
        owner: told.owner,
        recovery: told.recovery,
        retention: told.expires_at.after(told.created_at),
        tombstone: told.tombstone,
        entry,
    }
}

/// How it had ended; `None` if it has not. An owner that is here goes on with it, and says so itself.
fn end(told: &Record, is_here: bool) -> Option<Settlement> {
    match &told.state {
        State::Completed { outcome } => Some(Settlement::Completed(outcome.clone())),
        State::Failed { outcome } => Some(Settlement::Failed(outcome.clone())),
        State::InDoubt { doubt, .. } => Some(Settlement::InDoubt(*doubt)),
        State::Released => Some(Settlement::Released),
        State::Running { .. } if !is_here => Some(Settlement::InDoubt(Doubt::OwnerVanished)),
        State::Running { .. } | State::Pending { .. } | State::Buried => None,
    }
}

async fn write(inner: &Inner, write: Write) -> Result<(), StoreError> {
    match inner.store.commit(vec![write]).await.pop() {
        Some(Ok(Written::Done { .. })) => Ok(()),
        Some(Ok(Written::Refused { .. })) => {
            Err(StoreError::unavailable("somebody else wrote while the lost was written back"))
        }
        Some(Err(error)) => Err(error),
        None => Err(StoreError::unavailable("the store gave no answer")),
    }
}
