//! Requests that were accepted for later: where to look, and what is seen there.

use std::time::Duration;

use hapax_core::{OperationId, Record, StateTag, Store, Tenant, store::Loaded};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER},
    request::Parts,
};
use serde_json::json;

use super::{
    answer,
    code::Code,
    headers,
    layer::{Shared, Site},
    problem::{Problem, seconds},
    revalidate,
};
use crate::body::Body;

/// When to look again: nobody knows how long it takes, so often, but not all the time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// 202: it is accepted, and this is where to look.
pub(crate) fn accepted(site: &Site, id: OperationId, record: Option<&Record>) -> Response<Body> {
    let state = record.map_or(StateTag::Running, Record::tag);
    let mut response = state_of(StatusCode::ACCEPTED, state);
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
pub(crate) async fn look<S: Store>(shared: &Shared<S>, parts: &Parts, id: &str) -> Response<Body> {
    let site = &shared.front.site;
    let caller = match Known::by(shared, parts).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(site),
    };
    let unknown = || {
        let detail = "Nothing is known under this address for this caller.";
        let unknown = || Problem::new(Code::OperationUnknown, detail);
        caller.unverified.clone().unwrap_or_else(unknown).into_response(site)
    };
    let told = id.parse().ok().and_then(|signed| shared.front.salt.verified(&signed));
    let Some(id) = told else { return unknown() };
    let Loaded { now, record } = match shared.engine.load(id).await {
        Ok(loaded) => loaded,
        Err(error) => return answer::store_failed(&error).into_response(site),
    };
    let Some(record) = record.filter(|record| caller.is(record.operation.tenant())) else {
        return unknown();
    };
    let asked = shared.front.routes.revalidators(record.operation.scope());
    let mut response = match revalidate::refusal_of_all(asked, parts, site).await {
        Some(refusal) => refusal,
        None if record.is_expired(now) => answer::gone().into_response(site),
        None => seen(site, &record),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Who a caller is to the layer and to each of its routes.
struct Known {
    tenants: Vec<Tenant>,
    /// Why the caller may also be somebody else, if that could not be found out.
    unverified: Option<Problem>,
}

impl Known {
    /// Refused if the caller is nobody to all of them.
    async fn by<S: Store>(shared: &Shared<S>, parts: &Parts) -> Result<Self, Problem> {
        let (mut tenants, mut unverified, mut refused) = (Vec::new(), None, None);
        for tenancy in shared.front.tenancies() {
            match tenancy.tenant(&shared.front.salt, parts).await {
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

fn seen(site: &Site, record: &Record) -> Response<Body> {
    match record.tag() {
        StateTag::Pending | StateTag::Running | StateTag::Released => {
            state_of(StatusCode::OK, record.tag())
        }
        StateTag::Completed | StateTag::Failed => answer::replay(site, record),
        StateTag::InDoubt => answer::in_doubt(record.operation.id()).into_response(site),
        StateTag::Buried => answer::gone().into_response(site),
    }
}

fn state_of(status: StatusCode, state: StateTag) -> Response<Body> {
    let document = json!({ "state": state.as_str() }).to_string();
    let mut response = Response::new(Body::from(bytes::Bytes::from(document)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if state != StateTag::Released {
        headers.insert(RETRY_AFTER, seconds(LOOK_AGAIN));
    }
    response
}
