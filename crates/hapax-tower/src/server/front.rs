//! What every request meets before anybody is asked: which route it is, whose, and under which key.

use std::sync::Arc;

use hapax_core::{Salt, Tenant, TenantKey};
use http::{HeaderMap, request::Parts};
use quick_cache::sync;

use super::{
    layer::Site,
    room::Room,
    route::Routes,
    tenancy::{KNOWN_MAX, Tenancy},
};

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
    /// The fingerprint keys of tenants that asked lately.
    keys: Arc<sync::Cache<Tenant, TenantKey>>,
}

impl Front {
    pub(crate) fn new(salt: Salt, tenancy: Tenancy, routes: Arc<Routes>, site: Arc<Site>) -> Self {
        let keys = Arc::new(sync::Cache::new(KNOWN_MAX));
        let routes = Routes::with_secrets(routes, tenancy.credentials());
        site.sign_with(salt);
        Self { salt, tenancy, routes, site, origin: None, room: None, keys }
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
