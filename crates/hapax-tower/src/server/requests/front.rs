//! What every request meets before anybody is asked: which route it is, whose, and under which key.

use std::sync::Arc;

use hapax_core::Salt;
use hapax_engine::TenantKeys;
use http::{HeaderMap, Response, request::Parts};

use crate::{
    body::Body,
    server::{
        comparison::rule::Comparing,
        layer::Site,
        observation::Observer,
        requests::{
            cors::{Cors, Preflight},
            room::Room,
            route::Routes,
            tenancy::Tenancy,
        },
    },
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
    /// Where requests are compared.
    pub(crate) comparing: Comparing,
    /// What pages of other origins may, if that is said here.
    pub(crate) cors: Option<Arc<Cors>>,
    pub(crate) tenant_keys: Arc<TenantKeys>,
    /// Who watches the requests of routes that are observed.
    pub(crate) observer: Observer,
}

impl Front {
    pub(crate) fn new(
        tenant_keys: Arc<TenantKeys>,
        tenancy: Tenancy,
        routes: Arc<Routes>,
        site: Arc<Site>,
    ) -> Self {
        let salt = tenant_keys.salt();
        let routes = Routes::with_secrets(routes, tenancy.credentials());
        site.sign_with(salt);
        let comparing = Comparing::default();
        let (origin, room, cors, observer) = (None, None, None, Observer::default());
        Self { salt, tenancy, routes, site, origin, room, comparing, cors, tenant_keys, observer }
    }

    /// Has its pages there from now on.
    pub(crate) fn answer_at(&mut self, site: Arc<Site>) {
        site.sign_with(self.salt);
        self.site = site;
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
