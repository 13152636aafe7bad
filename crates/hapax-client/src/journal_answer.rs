//! What the journal knows of an operation that is over, told as if it had just ended.

use hapax_core::{Body, Key, Outcome};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{
    answer::{Answer, NotKept, Warning},
    error::{CallError, Unfinished},
    journal::{EntryState, JournalEntry},
};

/// The recorded end; that somebody else pursues it, if it has none.
pub(crate) fn told(entry: JournalEntry) -> Result<Answer, CallError> {
    match &entry.state {
        EntryState::Done { answer, .. } => Ok(answered(&entry, answer)),
        EntryState::Refused { answer, .. } => {
            Err(CallError::Refused(Box::new(answered(&entry, answer))))
        }
        EntryState::Unknown { reason, .. } => {
            let reason = reason.clone();
            Err(CallError::Unknown(Box::new(unfinished(entry, reason))))
        }
        EntryState::GaveUp { reason, .. } => {
            let reason = reason.clone();
            Err(CallError::GaveUp(Box::new(unfinished(entry, reason))))
        }
        EntryState::Pending { lease } => {
            let ends_in = lease.unwrap_or_default();
            Err(CallError::Held { name: entry.name, ends_in })
        }
    }
}

fn answered(entry: &JournalEntry, outcome: &Outcome) -> Answer {
    let headers = outcome.headers().iter().filter_map(|header| {
        let name = HeaderName::try_from(&header.name).ok()?;
        Some((name, HeaderValue::from_maybe_shared(header.value.clone()).ok()?))
    });
    let mut all = HeaderMap::new();
    headers.for_each(|(name, value)| {
        all.append(name, value);
    });
    let body = match outcome.body() {
        Body::Kept(bytes) => Ok(bytes.clone()),
        Body::NotKept { len } | Body::Sealed { len, .. } => Err(NotKept { len: *len }),
        _ => Err(NotKept { len: 0 }),
    };
    let warnings = body.as_ref().err().copied().map(Warning::NotKept).into_iter().collect();
    Answer {
        // Written from a status, so it is one.
        status: StatusCode::from_u16(outcome.status()).unwrap_or_default(),
        headers: all,
        body,
        key: Some(entry.key.clone()),
        attempts: entry.attempts,
        replayed: false,
        recorded: true,
        warnings,
    }
}

fn unfinished(entry: JournalEntry, reason: String) -> Unfinished {
    let key: Key = entry.key;
    Unfinished {
        name: Some(entry.name),
        key: Some(key),
        method: entry.request.method().clone(),
        url: entry.request.url().clone(),
        attempts: entry.attempts,
        answer: None,
        reason: reason.into(),
    }
}
