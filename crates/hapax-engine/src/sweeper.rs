//! Looks after operations whose owner is overdue.

use std::sync::{Arc, Weak};

use hapax_core::{
    Doubt, Record, Recovery, StateTag, StoreError, Sweep,
    limits::PAGE_RECORDS_MAX,
    quiet_from,
    settle::sweep,
    store::{Claim, Entry, Over, Settlement, Written},
};
use tokio::{sync::watch, time::sleep};

use crate::{
    begin::{self, won},
    engine::Shared,
    in_flight::Boarding,
    permit::{Followed, Permit, settle_as_seen},
};

/// Sweeps at every interval until told to stop.
pub(crate) async fn run(shared: Weak<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        let Some(interval) = shared.upgrade().map(|shared| shared.inner.options.sweep_every) else {
            return;
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(interval) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        if let Err(error) = sweep_once(&shared).await {
            tracing::warn!(%error, "a sweep failed and will be tried again");
        }
    }
}

async fn sweep_once(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let inner = &shared.inner;
    loop {
        let watch = inner.look_at_clock().await?;
        let overdue = inner.store.overdue(PAGE_RECORDS_MAX).await?;
        if overdue.is_empty() {
            return Ok(());
        }
        if !watch.is_trusted_with_leases() {
            inner.counters.sweeps_skipped.one();
            tracing::warn!("the store's clock jumped; overdue operations wait until it has stayed");
            return Ok(());
        }
        let full = overdue.len() >= PAGE_RECORDS_MAX;
        let mut acted = false;
        for record in overdue {
            let now = inner.clock.now_for(&record);
            if now.is_some_and(|now| record.until() <= now) {
                acted |= look_after(shared, record).await?;
            }
        }
        if !full || !acted {
            return Ok(());
        }
    }
}

async fn look_after(shared: &Arc<Shared>, record: Record) -> Result<bool, StoreError> {
    let inner = &shared.inner;
    let id = record.operation.id();
    if inner.flights.get(id).is_some() {
        // Our own, late with its sign of life: its renewal or its end is on the way.
        return Ok(false);
    }
    if record.tag() == StateTag::Pending && inner.past.quarantine().is_some() {
        // It may have been run, in what the store has forgotten.
        return Ok(false);
    }
    let finisher = inner.options.finisher.as_ref();
    if record.request().is_some() && finisher.is_some_and(|finisher| !finisher.serves(&record)) {
        return Ok(false);
    }
    match sweep(&record, finisher.is_some()) {
        Sweep::Leave => Ok(false),
        // A new life would forget what is finished: a person or the next arrival goes on instead.
        Sweep::Release if !inner.store.steps(id).await?.is_empty() => {
            let doubt = Settlement::InDoubt(Doubt::OwnerVanished);
            if settle_as_seen(inner, &record, doubt).await? {
                inner.counters.swept_in_doubt.one();
            }
            Ok(true)
        }
        Sweep::Release => {
            if settle_as_seen(inner, &record, Settlement::Released).await? {
                inner.counters.swept_released.one();
            }
            Ok(true)
        }
        Sweep::GiveUp => {
            let doubt = Settlement::InDoubt(Doubt::OwnerVanished);
            if settle_as_seen(inner, &record, doubt).await? {
                inner.counters.swept_in_doubt.one();
            }
            Ok(true)
        }
        Sweep::TakeOver(recovery) => {
            take_over(shared, &record, recovery).await;
            Ok(true)
        }
    }
}

/// Claims an abandoned or queued operation and hands it to the finisher, unless somebody else is
/// faster.
pub(crate) async fn take_over(shared: &Arc<Shared>, record: &Record, recovery: Recovery) {
    let inner = &shared.inner;
    let id = record.operation.id();
    let Boarding::First(seat) = inner.flights.board(id) else { return };
    let Some(finisher) = inner.options.finisher.clone() else { return };
    let Some(policy) = finisher.policy_of(record) else { return };
    let claim = Claim {
        operation: record.operation.clone(),
        fingerprint: record.fingerprint,
        over: Over::Abandoned(record.stamp()),
        fence: record.fence.next(),
        owner: inner.new_owner(),
        recovery: record.recovery,
        retention: policy.retention().window,
        tombstone: record.tombstone,
        entry: Entry::Run { lease: policy.lease(), request: None },
    };
    match begin::write(inner, &claim, &policy).await {
        Ok(Written::Done { now }) => {
            inner.counters.swept_taken_over.one();
            tracing::info!(operation = %id, fence = claim.fence.get(), "took over an abandoned operation");
            let taken = Arc::new(won(now, Some(record), &claim));
            inner.acknowledged.add(&taken);
            let quiet_from = quiet_from(record, &policy);
            let followed = Followed::owner(claim.over, quiet_from, Some(record));
            let permit = Permit::new(Arc::clone(shared), seat, taken, followed, policy);
            if let Some(finishing) = finisher.finish(permit, recovery) {
                tokio::spawn(finishing);
            }
        }
        Ok(Written::Refused { .. }) => {}
        Err(error) => {
            tracing::warn!(operation = %id, %error, "an abandoned operation waits for the next sweep")
        }
    }
}
