//! Requests that were accepted for later: where to look, and what is seen there.

use std::time::Duration;

use hapax_core::{OperationId, Record, State, StateTag, Tenant, Timestamp, store::Loaded};
use hapax_engine::Engine;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER},
    request::Parts,
};
use serde_json::json;

use crate::{
    body::Body,
    server::{
        execution::{revalidate, usual_time::UnderWay},
        layer::Site,
        requests::{front::Front, headers, stored_request},
        responses::{
            answer,
            code::Code,
            problem::{Problem, seconds},
        },
    },
};

/// 202: it is accepted, and this is where to look.
pub(crate) fn accepted(
    site: &Site,
    id: OperationId,
    record: Option<&Record>,
    look_again: Duration,
) -> Response<Body> {
    let state = record.map_or(StateTag::Running, Record::tag);
    let mut response = state_of(StatusCode::ACCEPTED, state, look_again);
    let headers = response.headers_mut();
    let location = site.operation(id).and_then(|address| HeaderValue::try_from(address).ok());
    headers.extend(location.map(|location| (LOCATION, location)));
    if let Some(record) = record {
        headers::add_expiry(headers, record.expires_at);
    }
    response
}

/// What is seen at the address of an operation. Another tenant's operation is not there, and neither
/// is one at an address that nobody was told.
pub(crate) async fn look(
    engine: &Engine,
    front: &Front,
    parts: &Parts,
    id: &str,
) -> Response<Body> {
    let site = &front.site;
    let caller = match KnownCaller::by(front, parts).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(site),
    };
    let unknown = || {
        let detail = "Nothing is known under this address for this caller.";
        let unknown = || Problem::new(Code::OperationUnknown, detail);
        caller.unverified.clone().unwrap_or_else(unknown).into_response(site)
    };
    let told = id.parse().ok().and_then(|signed| front.salt.verified(&signed));
    let Some(id) = told else { return unknown() };
    let Loaded { now, record } = match engine.load(id).await {
        Ok(loaded) => loaded,
        Err(error) => return answer::store_failed(&error).into_response(site),
    };
    let Some(record) = record.filter(|record| caller.is(record.operation.tenant())) else {
        return unknown();
    };
    let asked = front.routes.revalidators(record.operation.scope());
    let mut response = match revalidate::refusal_of_all(asked, parts, site).await {
        Some(refusal) => refusal,
        None if record.is_expired(now) => answer::gone().into_response(site),
        None => seen(site, &record, look_again(front, now, &record)),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Who a caller is to the layer and to each of its routes.
struct KnownCaller {
    tenants: Vec<Tenant>,
    /// Why the caller may also be somebody else, if that could not be found out.
    unverified: Option<Problem>,
}

impl KnownCaller {
    /// Refused if the caller is nobody to all of them.
    async fn by(front: &Front, parts: &Parts) -> Result<Self, Problem> {
        let (mut tenants, mut unverified, mut refused) = (Vec::new(), None, None);
        for tenancy in front.tenancies() {
            match tenancy.tenant(&front.salt, parts).await {
                Ok(tenant) => tenants.push(tenant),
                Err(problem) if problem.code == Code::CallerUnverifiable => {
                    unverified = Some(problem);
                }
                Err(problem) => refused = refused.or(Some(problem)),
            }
        }
        match (tenants.is_empty(), unverified, refused) {
            (true, Some(problem), _) | (true, None, Some(problem)) => Err(problem),
            (_, unverified, _) => Ok(Self { tenants, unverified }),
        }
    }

    fn is(&self, tenant: &Tenant) -> bool {
        self.tenants.contains(tenant)
    }
}

/// When to look again at an operation of the route its request was for; what is not kept of a
/// request does not say which one that was.
fn look_again(front: &Front, now: Timestamp, record: &Record) -> Duration {
    let routes = &front.routes;
    let kept = record.request().and_then(|request| stored_request::read(request.clone()));
    let found = kept.map(|request| routes.find(&request.into_parts().0));
    let (route, protection) = found.unwrap_or((usize::MAX, None));
    let usual_time = routes.usual_time(route);
    match record.state {
        State::Running { lease_until, .. } => usual_time.ask_again(UnderWay {
            at_work: now.after(record.changed_at),
            lease_left: lease_until.after(now),
            lease: protection.map_or(Duration::ZERO, |protection| protection.policy.lease()),
        }),
        State::Pending { .. }
        | State::Completed { .. }
        | State::Failed { .. }
        | State::InDoubt { .. }
        | State::Released
        | State::Buried => usual_time.look_again(),
    }
}

fn seen(site: &Site, record: &Record, look_again: Duration) -> Response<Body> {
    match record.tag() {
        StateTag::Pending | StateTag::Running | StateTag::Released => {
            state_of(StatusCode::OK, record.tag(), look_again)
        }
        StateTag::Completed | StateTag::Failed => answer::replay(site, record),
        StateTag::InDoubt => answer::in_doubt(record.operation.id()).into_response(site),
        StateTag::Buried => answer::gone().into_response(site),
    }
}

fn state_of(status: StatusCode, state: StateTag, look_again: Duration) -> Response<Body> {
    let document = json!({ "state": state.as_str() }).to_string();
    let mut response = Response::new(Body::from(bytes::Bytes::from(document)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if state != StateTag::Released {
        headers.insert(RETRY_AFTER, seconds(look_again));
    }
    response
}
