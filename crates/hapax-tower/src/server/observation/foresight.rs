//! What a request would have come to: read as a protected one is read, and refused nothing.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use hapax_core::{Fingerprint, Operation, Tenant, TenantKey};
use http::request::Parts;

use super::{
    observer::{Observation, Observer},
    shadow::ShadowAttempt,
    verdict::ObservedVerdict,
};
use crate::server::{
    comparison::rule::BodyComparison,
    dialect::Dialect,
    dispatch::applies,
    options::{InFlight, KeyRule, Protection},
    requests::{
        arrival::{self, NamedRequest},
        derived_key::{DerivedKey, KeyOwner, key_of_values},
        front::Front,
        headers, key, repeatability,
        room::RequestRoom,
        target::{self, SpelledPath},
    },
    responses::{code::Code, problem::Problem},
};

/// A request that was passed on, and what is needed to judge it.
pub(super) struct Foresight {
    front: Front,
    protection: Arc<Protection>,
    /// Its head in the spelling that requests are compared in.
    parts: Parts,
}

/// What was seen of a body that passed.
pub(super) enum SeenBody {
    /// All of it, and the room it takes.
    Whole(Bytes, RequestRoom),
    /// More than is compared.
    Larger,
    /// More than there was room for.
    NoRoom,
    /// It never came to its end, or nobody read it so far.
    BrokenOff,
}

impl Foresight {
    pub(super) fn new(front: &Front, protection: &Arc<Protection>, parts: &Parts) -> Self {
        let mut parts = parts.clone();
        let spelled = SpelledPath::read(parts.uri.path()).spelled;
        if *spelled != *parts.uri.path()
            && let Some(uri) = target::with_path(&parts.uri, &spelled)
        {
            parts.uri = uri;
        }
        Self { front: front.clone(), protection: Arc::clone(protection), parts }
    }

    /// Tells the observer what would have been done, and gives back the attempt it would have been.
    pub(super) async fn tell(self, body: SeenBody) -> Option<ShadowAttempt> {
        let observer = self.front.observer.clone();
        let peer = observer.peer(&self.parts);
        let tenant = arrival::tenant(&self.front, &self.protection, &self.parts).await.ok();
        let caller = tenant.clone().or_else(|| stranger(peer))?;
        let bytes = match &body {
            SeenBody::Whole(bytes, _) => Some(bytes.clone()),
            SeenBody::Larger | SeenBody::NoRoom | SeenBody::BrokenOff => None,
        };
        let (route, worth) = (Arc::clone(&self.protection.label), self.protection.worth.clone());
        let (verdict, attempt) = self.judge(&observer, tenant.is_some(), caller, body).await;
        let repeated = verdict.is_second_effect().then_some(worth).flatten();
        let worth = repeated.zip(bytes).map(|(worth, bytes)| worth.of(&bytes));
        observer.tell(&Observation { route, verdict, tenant, peer, worth });
        attempt
    }

    async fn judge(
        mut self,
        observer: &Observer,
        is_known: bool,
        caller: Tenant,
        body: SeenBody,
    ) -> (ObservedVerdict, Option<ShadowAttempt>) {
        let (unkeyed, parts) = (!applies(&self.protection, &self.parts), &mut self.parts);
        let tenant_key = self.front.salt.tenant_key(&caller);
        let named = named(&self.front, &self.protection, parts, caller, &body).await;
        if let Ok(operation) = &named {
            headers::ignore_upgrade(&mut parts.headers);
            key::respell(&mut parts.headers, &self.protection, operation.key());
        }
        let compared = self.fingerprint(tenant_key, body).await;
        let came_before =
            || compared.as_ref().is_ok_and(|fingerprint| observer.came_before(*fingerprint));
        let arrive = |operation: &Operation| match &compared {
            Ok(fingerprint) => observer.arrive(operation, *fingerprint, &self.protection.policy),
            Err(code) => (ObservedVerdict::Refused(*code), None),
        };
        match named {
            Err(Code::KeyMissing) if unkeyed || is_known => {
                (ObservedVerdict::KeyMissing { again: came_before() }, None)
            }
            Err(Code::KeyMissing) => {
                (ObservedVerdict::TenantUnknown { again: came_before() }, None)
            }
            Ok(operation) if is_known => arrive(&operation),
            Ok(operation) => {
                let (verdict, attempt) = arrive(&operation);
                let again = verdict.is_second_effect();
                (ObservedVerdict::TenantUnknown { again }, attempt)
            }
            Err(_) if !is_known => (ObservedVerdict::TenantUnknown { again: false }, None),
            Err(code) => (ObservedVerdict::of_refusal(code), None),
        }
    }

    /// The fingerprint that a protected request would have, or how it would be refused.
    async fn fingerprint(&self, key: TenantKey, body: SeenBody) -> Result<Fingerprint, Code> {
        let (body, room) = match body {
            SeenBody::Whole(body, room) => (body, room),
            SeenBody::Larger => return Err(Code::BodyTooLarge),
            SeenBody::NoRoom => return Err(Code::Overloaded),
            SeenBody::BrokenOff => return Err(Code::BodyIncomplete),
        };
        let comparing = &self.front.comparing;
        let compared = match comparing.compare(key, &self.protection, &self.parts, &body) {
            BodyComparison::Done(compared) => compared,
            BodyComparison::Elsewhere(comparing) => comparing.await,
        };
        drop(room);
        compared.map_err(|problem| problem.code)
    }
}

/// Which operation a request asks for, or why it would be refused.
async fn named(
    front: &Front,
    protection: &Arc<Protection>,
    parts: &Parts,
    caller: Tenant,
    body: &SeenBody,
) -> Result<Operation, Code> {
    let code = |problem: Problem| problem.code;
    let operation = match arrival::named(protection, parts, caller).map_err(code)? {
        NamedRequest::Operation(operation) => operation,
        NamedRequest::ByContent(owner) => {
            named_by_content(front, protection, parts, owner, body).await?
        }
        NamedRequest::Keyless => return Err(Code::KeyMissing),
    };
    match protection.dialect {
        Dialect::Header(_) | Dialect::Stripe | Dialect::Paypal | Dialect::Adyen => {}
        Dialect::Repeatability => drop(repeatability::first_sent(&parts.headers).map_err(code)?),
    }
    let is_accepted = protection.in_flight == InFlight::Accept;
    if is_accepted && !headers::keeps_what_it_needs(&parts.headers, protection) {
        return Err(Code::CredentialsNotKept);
    }
    Ok(operation)
}

/// The operation whose key is made of a body.
///
/// A key that holds for a window of time only is watched as none: whether the same came shortly before is told of
/// those, too.
async fn named_by_content(
    front: &Front,
    protection: &Arc<Protection>,
    parts: &Parts,
    (tenant, scope): KeyOwner,
    body: &SeenBody,
) -> Result<Operation, Code> {
    let SeenBody::Whole(bytes, _) = body else { return Err(Code::KeyUnderivable) };
    let Some(DerivedKey::Parts(_)) = &protection.derived_key else { return Err(Code::KeyMissing) };
    match key_of_values(front, protection, parts, bytes).await {
        Ok(key) => Ok(Operation::new(tenant, scope, key)),
        Err(problem)
            if problem.code == Code::KeyUnderivable && protection.key == KeyRule::Optional =>
        {
            Err(Code::KeyMissing)
        }
        Err(problem) => Err(problem.code),
    }
}

/// Who asks, where nobody says: whoever comes from the same address. No tenant is called so.
fn stranger(peer: Option<IpAddr>) -> Option<Tenant> {
    let from = peer.map_or_else(|| "anywhere".to_owned(), |peer| peer.to_string());
    Tenant::parse(["address:", &from].concat()).ok()
}
