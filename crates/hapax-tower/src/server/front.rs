//! What every request meets before anybody is asked: which route it is, whose, and under which key.

use std::sync::Arc;

use hapax_core::{Salt, Tenant, TenantKey};
use http::{HeaderMap, Response, request::Parts};
use quick_cache::sync;

use super::{
    compared::Comparing,
    cors::{Cors, Preflight},
    layer::Site,
    room::Room,
    route::Routes,
    tenancy::{KNOWN_MAX, Tenancy},
};
use crate::body::Body;

/// Says where a request came from, as headers.
pub(crate) type OriginFn = dyn Fn(&Parts) -> HeaderMap + Send + Sync;

/// The front of a layer: alike whether operations are run under a lease or in a transaction.
#[derive(Clone)]
pub(crate) struct Front {
    /// Keys all fingerprints, and signs the ids that clients are told.
    pub(crate) salt: Salt,
    pub(crate) tenancy: Tenancy,
    pub(crate) routes: Arc<Routes>,
    pub(crate) site: Arc<Site>,
    /// Says where a request came from, for those that are run later.
    pub(crate) origin: Option<Arc<OriginFn>>,
    /// Where request bodies are kept, if that is limited.
    pub(crate) room: Option<Room>,
    /// Where requests are compared.
    pub(crate) comparing: Comparing,
    /// What pages of other origins may, if that is said here.
    pub(crate) cors: Option<Arc<Cors>>,
    /// The fingerprint keys of tenants that asked lately.
    keys: Arc<sync::Cache<Tenant, TenantKey>>,
}

impl Front {
    pub(crate) fn new(salt: Salt, tenancy: Tenancy, routes: Arc<Routes>, site: Arc<Site>) -> Self {
        let keys = Arc::new(sync::Cache::new(KNOWN_MAX));
        let routes = Routes::with_secrets(routes, tenancy.credentials());
        site.sign_with(salt);
        let comparing = Comparing::default();
        Self { salt, tenancy, routes, site, origin: None, room: None, comparing, cors: None, keys }
    }

    /// Has its pages there from now on.
    pub(crate) fn answer_at(&mut self, site: Arc<Site>) {
        site.sign_with(self.salt);
        self.site = site;
    }

    /// The key of a tenant's fingerprints; deriving it costs as much as using it.
    pub(crate) fn tenant_key(&self, tenant: &Tenant) -> TenantKey {
        if let Some(known) = self.keys.get(tenant) {
            return known;
        }
        let derived = self.salt.tenant_key(tenant);
        self.keys.insert(tenant.clone(), derived.clone());
        derived
    }

    /// The answer to a browser that asks whether a page of another origin may use a protected route
    /// or read a page of ours.
    pub(crate) fn preflight(&self, cors: &Cors, parts: &Parts) -> Option<Response<Body>> {
        let (asked, path) = (Preflight::by(parts)?, parts.uri.path());
        let page = path.strip_prefix(&self.site.home);
        let is_ours = page.is_some_and(|page| page.is_empty() || page.starts_with('/'))
            || self.routes.protection(&asked.method, path).is_some();
        is_ours.then(|| cors.answer(&asked))
    }

    /// Every tenancy in force, once.
    pub(crate) fn tenancies(&self) -> Vec<&Tenancy> {
        let mut tenancies = vec![&self.tenancy];
        for tenancy in self.routes.protections().filter_map(|route| route.tenancy.as_ref()) {
            if !tenancies.iter().any(|known| known.is(tenancy)) {
                tenancies.push(tenancy);
            }
        }
        tenancies
    }
}
