//! Requests that are the same within a time, and the operation they share.
//!
//! Time is cut into windows of that length. A request belongs to the operation of the window before if
//! that one was begun recently enough, and otherwise to the one of its own: so none is taken for one
//! that began longer ago, and one that began just before the cut is not missed.

use std::time::Duration;

use hapax_core::{Fingerprint, Key, Operation, Scope, StoreError, Tenant, Timestamp, time::micros};
use hapax_engine::Engine;

/// How often it is looked again because a window ended meanwhile.
const LOOKS_MAX: usize = 2;

/// The operation of a request with this fingerprint; `None` if its key could not be spelled.
pub(crate) async fn in_window(
    engine: &Engine,
    within: Duration,
    fingerprint: Fingerprint,
    (tenant, scope): (Tenant, Scope),
) -> Result<Option<Operation>, StoreError> {
    let operation = |start: Timestamp| {
        let key = Key::parse(spelled(fingerprint, start, within)).ok()?;
        Some(Operation::new(tenant.clone(), scope.clone(), key))
    };
    let Some(known) = operation(Timestamp::ZERO) else { return Ok(None) };
    let mut now = match engine.store_now() {
        Some(now) => now,
        None => engine.load(known.id()).await?.now,
    };
    for _ in 0..LOOKS_MAX {
        let start = start_of_window(now, within);
        let Some(before) = operation(start.minus(within)) else { return Ok(None) };
        let loaded = engine.load(before.id()).await?;
        let is_recent = loaded.record.is_some_and(|record| {
            !record.is_expired(loaded.now) && loaded.now.after(record.created_at) < within
        });
        if is_recent {
            return Ok(Some(before));
        }
        now = now.max(loaded.now);
        if start_of_window(now, within) == start {
            break;
        }
    }
    Ok(operation(start_of_window(now, within)))
}

fn start_of_window(now: Timestamp, within: Duration) -> Timestamp {
    let (now, length) = (now.as_micros(), micros(within).max(1));
    Timestamp::from_micros(now - now.rem_euclid(length))
}

/// `fingerprint=…&from=1800000000000ms&within=30000ms`.
fn spelled(fingerprint: Fingerprint, start: Timestamp, within: Duration) -> String {
    let start = start.as_micros().div_euclid(1000);
    format!("fingerprint={fingerprint}&from={start}ms&within={}ms", within.as_millis())
}
