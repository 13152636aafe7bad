//! What of a write is sealed, and what of a record is opened.

use bytes::{Buf, Bytes};
use hapax_core::{
    Body, Fence, OperationId, Outcome, Owner, Record, State, StateTag, Step, StoreError, codec,
    limits::OUTCOME_HEADER_BYTES_MAX,
    store::{By, Claim, Entry, KeepStep, Settle, Settlement},
};

use crate::{
    binding::{Binding, OutcomePlace},
    sealing::{self, SealingKey},
};

/// The claim with its request sealed, if it brings one.
pub(crate) fn seal_claim(key: &SealingKey, mut claim: Claim) -> Result<Claim, StoreError> {
    let binding = Binding::request(claim.operation.id(), &claim.fingerprint);
    match &mut claim.entry {
        Entry::Run { request: Some(request), .. } | Entry::Queue { request, .. } => {
            *request = key.seal(&binding, &[request]).map_err(StoreError::unavailable)?;
        }
        Entry::Run { request: None, .. } => {}
    }
    Ok(claim)
}

/// The settle with its outcome sealed, if it brings one.
pub(crate) fn seal_settle(key: &SealingKey, mut settle: Settle) -> Result<Settle, StoreError> {
    let (fence, owner) = match settle.by {
        By::Owner { fence, owner } => (fence, owner),
        By::Onlooker(stamp) => (stamp.fence, stamp.owner),
    };
    let attempt = AttemptClose { id: settle.id, fence, owner, tag: settle.to.tag() };
    match &mut settle.to {
        Settlement::Completed(outcome) | Settlement::Failed(outcome) => {
            *outcome = seal_outcome(key, attempt, outcome)?;
        }
        Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {}
    }
    Ok(settle)
}

/// The step with its result sealed.
pub(crate) fn seal_step(key: &SealingKey, keep: KeepStep) -> Result<KeepStep, StoreError> {
    let binding = Binding::step(keep.id, keep.life, &keep.step);
    let sealed = key.seal(&binding, &[keep.step.result()]).map_err(StoreError::unavailable)?;
    let step = keep.step.with_result(sealed).map_err(StoreError::unavailable)?;
    Ok(KeepStep { step, ..keep })
}

/// The attempt that an outcome ended.
#[derive(Debug, Clone, Copy)]
struct AttemptClose {
    id: OperationId,
    fence: Fence,
    owner: Owner,
    tag: StateTag,
}

impl AttemptClose {
    fn of(record: &Record) -> Self {
        let (fence, owner) = (record.fence, record.owner);
        Self { id: record.operation.id(), fence, owner, tag: record.tag() }
    }

    fn binding(self, status: u16, len: u64) -> Binding {
        let Self { id, fence, owner, tag } = self;
        Binding::outcome(&OutcomePlace { id, fence, owner, tag, status, len })
    }
}

fn seal_outcome(
    key: &SealingKey,
    attempt: AttemptClose,
    outcome: &Outcome,
) -> Result<Outcome, StoreError> {
    let len = match outcome.body() {
        Body::Kept(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        Body::NotKept { len } | Body::Sealed { len, .. } => *len,
        _ => return Err(StoreError::unavailable("a body of a kind that cannot be encrypted")),
    };
    let (head, body) = (codec::head(outcome), codec::stored_body(outcome));
    let head_len = u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes();
    let binding = attempt.binding(outcome.status(), len);
    let bytes = key.seal(&binding, &[&head_len, &head, &body]).map_err(StoreError::unavailable)?;
    Outcome::new(outcome.status(), Vec::new(), Body::Sealed { len, bytes })
        .map_err(StoreError::unavailable)
}

/// Which version of its tenant's data key a record needs to be read; `None` if it is clear.
pub(crate) fn key_of(record: &Record) -> Result<Option<u32>, StoreError> {
    if let Some(Body::Sealed { bytes, .. }) = record.outcome().map(Outcome::body) {
        let version = version_of(bytes)?;
        return version
            .map(Some)
            .ok_or_else(|| StoreError::damaged("it does not begin as ciphertext"));
    }
    record.request().map_or(Ok(None), |request| version_of(request))
}

/// Which version of its tenant's data key sealed these bytes; `None` if nobody did.
pub(crate) fn version_of(bytes: &[u8]) -> Result<Option<u32>, StoreError> {
    let version = sealing::sealed_with(bytes).transpose();
    version.map_err(|unknown| {
        if unknown.is_newer() { StoreError::too_new(unknown) } else { StoreError::damaged(unknown) }
    })
}

/// The record in the clear; `key` is the one that [`key_of`] names.
pub(crate) fn open_record(key: &SealingKey, mut record: Record) -> Result<Record, StoreError> {
    let attempt = AttemptClose::of(&record);
    let binding = Binding::request(record.operation.id(), &record.fingerprint);
    match &mut record.state {
        State::Completed { outcome } | State::Failed { outcome } => {
            *outcome = open_outcome(key, attempt, outcome)?;
        }
        State::Pending { request, .. }
        | State::Running { request: Some(request), .. }
        | State::InDoubt { request: Some(request), .. } => {
            *request = key.open(&binding, request).map_err(StoreError::damaged)?;
        }
        State::Running { request: None, .. }
        | State::InDoubt { request: None, .. }
        | State::Released
        | State::Buried => {}
    }
    Ok(record)
}

fn open_outcome(
    key: &SealingKey,
    attempt: AttemptClose,
    outcome: &Outcome,
) -> Result<Outcome, StoreError> {
    let Body::Sealed { len, bytes } = outcome.body() else { return Ok(outcome.clone()) };
    let binding = attempt.binding(outcome.status(), *len);
    let mut opened = key.open(&binding, bytes).map_err(StoreError::damaged)?;
    let malformed = || StoreError::damaged("what was encrypted is no outcome");
    let head_len = opened.try_get_u32().map_err(|_| malformed())?;
    let head_len = usize::try_from(head_len).unwrap_or(usize::MAX);
    if head_len > opened.len().min(HEAD_BYTES_MAX) {
        return Err(malformed());
    }
    let head = opened.split_to(head_len);
    Ok(codec::join(head, opened)?)
}

/// Largest head there is: its headers, and what keeps them apart.
const HEAD_BYTES_MAX: usize = OUTCOME_HEADER_BYTES_MAX + (1 << 10);

/// The record without what was sealed with a key that was erased.
///
/// That it was done is still known, so it is never done again. What only waited has an empty request, which
/// nobody can carry out.
pub(crate) fn without_contents(mut record: Record) -> Result<Record, StoreError> {
    match &mut record.state {
        State::Completed { outcome } | State::Failed { outcome } => {
            if let Body::Sealed { len, .. } = outcome.body() {
                let body = Body::NotKept { len: *len };
                let bare = Outcome::new(outcome.status(), Vec::new(), body);
                *outcome = bare.map_err(StoreError::damaged)?;
            }
        }
        State::Pending { request, .. } => *request = Bytes::new(),
        State::Running { request, .. } | State::InDoubt { request, .. } => *request = None,
        State::Released | State::Buried => {}
    }
    Ok(record)
}

/// The step in the clear.
pub(crate) fn open_step(
    key: &SealingKey,
    binding: &Binding,
    step: Step,
) -> Result<Step, StoreError> {
    let result = key.open(binding, step.result()).map_err(StoreError::damaged)?;
    step.with_result(result).map_err(StoreError::damaged)
}
