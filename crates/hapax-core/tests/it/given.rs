//! What the tests are given to start from.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Arrival, Doubt, Fence, Fingerprint, Key, Operation, Outcome, Owner, Policy, Record, Recovery,
    RequestParts, RetainFrom, Retention, RunMode, Salt, Scope, State, StateTag, Tenant, Timestamp,
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const TOMBSTONE: Duration = Duration::from_secs(60 * 60);
pub(crate) const RECOVERIES: [Recovery; 3] = [Recovery::Resend, Recovery::Probe, Recovery::Hold];
pub(crate) const TICK: Duration = Duration::from_micros(1);

/// When the life of every given record began.
pub(crate) const CREATED: Timestamp = Timestamp::from_micros(1_000_000_000);

pub(crate) fn operation(key: &str) -> Operation {
    Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /payments").unwrap(),
        Key::parse(key).unwrap(),
    )
}

pub(crate) fn fingerprint(body: &str) -> Fingerprint {
    let request = RequestParts { body: body.as_bytes(), ..RequestParts::default() };
    Salt::from_bytes([7; 32]).tenant_key(operation("k").tenant()).fingerprint(&request)
}

pub(crate) fn policy(recovery: Recovery) -> Policy {
    let retention = Retention { window: WINDOW, from: RetainFrom::Creation, tombstone: TOMBSTONE };
    Policy::new(LEASE, retention, recovery).unwrap()
}

/// The second attempt at the operation of [`record`].
pub(crate) fn arrival(body: &str) -> Arrival {
    Arrival {
        operation: operation("k"),
        fingerprint: fingerprint(body),
        owner: Owner(2),
        mode: RunMode::Run { request: None },
    }
}

pub(crate) fn request() -> Bytes {
    Bytes::from_static(b"the request")
}

/// A state of every kind, as owner 1 could have left it.
pub(crate) fn state(tag: StateTag) -> State {
    let (outcome, request) = (Outcome::bare(201), request());
    match tag {
        StateTag::Pending => State::Pending { pick_up_by: CREATED.plus(LEASE), request },
        StateTag::Running => {
            State::Running { lease_until: CREATED.plus(LEASE), request: Some(request) }
        }
        StateTag::Completed => State::Completed { outcome },
        StateTag::Failed => State::Failed { outcome: Outcome::bare(404) },
        StateTag::InDoubt => State::InDoubt { doubt: Doubt::Interrupted, request: Some(request) },
        StateTag::Released => State::Released,
        StateTag::Buried => State::Buried,
    }
}

pub(crate) fn record(tag: StateTag, recovery: Recovery) -> Record {
    Record {
        operation: operation("k"),
        fingerprint: fingerprint("same"),
        fence: Fence::FIRST,
        owner: Owner(1),
        recovery,
        created_at: CREATED,
        changed_at: CREATED,
        expires_at: CREATED.plus(WINDOW),
        tombstone: TOMBSTONE,
        state: state(tag),
    }
}
