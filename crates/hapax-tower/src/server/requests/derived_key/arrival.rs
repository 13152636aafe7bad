//! A request whose key is made of its content.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{Fingerprint, Key, Operation, Scope, Tenant};
use hapax_engine::Engine;
use http::request::Parts;

use super::{
    DerivedKey, KeyPart,
    content::{JsonContent, content_bytes_max},
    key_of, underivable,
    window::in_window,
};
use crate::{
    body::Body,
    server::{
        comparison::rule::{BodyComparison, is_large},
        options::{KeyRule, Protection},
        requests::{
            caller_signals::CallerSignals,
            drain::UnreadBody,
            front::Front,
            request_body::{BodyReceipt, ReceivedBody, Refused, receive_any, too_large},
            resumed_body::ResumedBody,
        },
        responses::{answer, code::Code, problem::Problem},
    },
};

/// What became of a request whose key is made of its content.
pub(crate) enum ContentArrival {
    Keyed(ContentKey, ReceivedBody),
    /// No key can be made of it, and its route lets such requests pass.
    Keyless(Body),
}

/// An operation whose key was made of the content of its request.
pub(crate) struct ContentKey {
    pub(crate) operation: Operation,
    /// What requests are compared by, where the key is made of that.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// Whose keys they are, and within what they are unique.
pub(crate) type KeyOwner = (Tenant, Scope);

/// Reads the content of a request, and makes a key of it.
pub(crate) async fn arrive(
    front: &Front,
    engine: Option<&Engine>,
    protection: &Arc<Protection>,
    said: CallerSignals,
    owner: KeyOwner,
    (parts, body): (&Parts, Body),
) -> Result<ContentArrival, Refused> {
    let may_pass = protection.key == KeyRule::Optional;
    let keyless = |body| ContentArrival::Keyless(Body::new(body));
    let received = match receive_any(front.room.as_ref(), protection, said, parts, body).await? {
        BodyReceipt::Whole(received) => received,
        BodyReceipt::Larger { read, rest, room } if may_pass => {
            return Ok(keyless(ResumedBody::new(read, rest, room)));
        }
        BodyReceipt::Larger { rest, .. } => return Err(too_large(protection, rest)),
    };
    match name(front, engine, protection, owner, (parts, &received.body)).await {
        Ok(key) => Ok(ContentArrival::Keyed(key, received)),
        Err(problem) if may_pass && problem.code == Code::KeyUnderivable => {
            let ReceivedBody { body, room } = received;
            Ok(keyless(ResumedBody::new(body, Body::empty(), Some(room))))
        }
        Err(problem) => Err((problem, UnreadBody::Nothing)),
    }
}

async fn name(
    front: &Front,
    engine: Option<&Engine>,
    protection: &Arc<Protection>,
    owner: KeyOwner,
    (parts, body): (&Parts, &Bytes),
) -> Result<ContentKey, Problem> {
    match &protection.derived_key {
        Some(DerivedKey::Parts(_)) => {
            let key = key_of_values(front, protection, parts, body).await?;
            let operation = Operation::new(owner.0, owner.1, key);
            Ok(ContentKey { operation, fingerprint: None })
        }
        Some(DerivedKey::Fingerprint { within }) => {
            let tenant_key = front.tenant_keys.get(&owner.0);
            let fingerprint = match front.comparing.compare(tenant_key, protection, parts, body) {
                BodyComparison::Done(compared) => compared?,
                BodyComparison::Elsewhere(comparing) => comparing.await?,
            };
            let operation = of_window(engine, *within, fingerprint, owner).await?;
            Ok(ContentKey { operation, fingerprint: Some(fingerprint) })
        }
        None => Err(underivable("Send a key.".to_owned())),
    }
}

/// The key that is made of values, some of which are in the body.
pub(crate) async fn key_of_values(
    front: &Front,
    protection: &Arc<Protection>,
    parts: &Parts,
    body: &Bytes,
) -> Result<Key, Problem> {
    let bytes = content_bytes_max(&parts.headers, body);
    if !is_large(bytes) {
        let content = JsonContent::read(&parts.headers, body)?;
        return key_of(values_of(protection), &parts.headers, Some(&content));
    }
    let (protection, headers, body) = (Arc::clone(protection), parts.headers.clone(), body.clone());
    let read = move || {
        let content = JsonContent::read(&headers, &body)?;
        key_of(values_of(&protection), &headers, Some(&content))
    };
    front.comparing.look(bytes, read).await
}

fn values_of(protection: &Protection) -> &[KeyPart] {
    match &protection.derived_key {
        Some(DerivedKey::Parts(parts)) => parts,
        Some(DerivedKey::Fingerprint { .. }) | None => &[],
    }
}

async fn of_window(
    engine: Option<&Engine>,
    within: Duration,
    fingerprint: Fingerprint,
    owner: KeyOwner,
) -> Result<Operation, Problem> {
    let no_key = || underivable("Nobody can look for an equal request here.".to_owned());
    let engine = engine.ok_or_else(no_key)?;
    match in_window(engine, within, fingerprint, owner).await {
        Ok(operation) => operation.ok_or_else(no_key),
        Err(error) => Err(answer::store_failed(&error)),
    }
}
