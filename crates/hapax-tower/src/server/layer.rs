//! The layer, and what it shares with every service it makes.

use std::{fmt, sync::Arc};

use hapax_core::{Store, Tenant, TenantKey};
use hapax_engine::Engine;
use quick_cache::sync;
use tower_layer::Layer;

use super::{
    code::Code,
    later::Later,
    receive::Room,
    route::{InvalidRoute, Routes},
    service::Idempotency,
    tenancy::{KNOWN_MAX, Tenancy},
};

/// Protects a service: one execution per key, every later request answered with the first answer.
///
/// Put it inside what authenticates and outside what limits the rate of new work: replays are free.
pub struct IdempotencyLayer<S: Store> {
    shared: Arc<Shared<S>>,
}

impl<S: Store> IdempotencyLayer<S> {
    /// A layer that runs everything while its client waits.
    pub fn new(engine: Engine<S>, tenancy: Tenancy, routes: Routes) -> Result<Self, InvalidRoute> {
        if routes.accepts_for_later() {
            return Err(InvalidRoute::NobodyForLater);
        }
        let (site, routes) = (Arc::default(), Arc::new(routes));
        let keys = Arc::new(sync::Cache::new(KNOWN_MAX));
        Ok(Self::of(Shared { engine, tenancy, routes, site, keys, has_later: false, room: None }))
    }

    /// A layer that also accepts requests to be run later, on the routes and pages of `later`.
    ///
    /// The engine must have been started with [`Later::finisher`]. Routes that `later` is given
    /// afterwards are those of the next layer.
    pub fn with_later(engine: Engine<S>, tenancy: Tenancy, later: &Later<S>) -> Self {
        let (routes, site) = (later.routes(), Arc::clone(later.site()));
        let keys = Arc::new(sync::Cache::new(KNOWN_MAX));
        Self::of(Shared { engine, tenancy, routes, site, keys, has_later: true, room: None })
    }

    /// The same layer with its pages elsewhere.
    #[must_use]
    pub fn site(self, site: Site) -> Self {
        Self::of(Shared { site: Arc::new(site), ..Shared::clone(&self.shared) })
    }

    /// The same layer, keeping at most this many bytes of protected requests in memory at once,
    /// over all its services and clones. A request for which there is no room is refused with 503
    /// before it is read.
    #[must_use]
    pub fn buffer_at_most(self, bytes: usize) -> Self {
        Self::of(Shared { room: Some(Room::of(bytes)), ..Shared::clone(&self.shared) })
    }

    fn of(shared: Shared<S>) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

impl<S: Store, Inner> Layer<Inner> for IdempotencyLayer<S> {
    type Service = Idempotency<Inner, S>;

    fn layer(&self, inner: Inner) -> Self::Service {
        Idempotency::new(inner, Arc::clone(&self.shared))
    }
}

impl<S: Store> Clone for IdempotencyLayer<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Store> fmt::Debug for IdempotencyLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layer = f.debug_struct("IdempotencyLayer");
        layer.field("tenancy", &self.shared.tenancy).field("routes", &self.shared.routes);
        layer.finish_non_exhaustive()
    }
}

/// What every request needs to know.
pub(crate) struct Shared<S: Store> {
    pub(crate) engine: Engine<S>,
    pub(crate) tenancy: Tenancy,
    pub(crate) routes: Arc<Routes>,
    pub(crate) site: Arc<Site>,
    /// The fingerprint keys of tenants that asked lately.
    pub(crate) keys: Arc<sync::Cache<Tenant, TenantKey>>,
    /// Whether requests can be run without their client.
    pub(crate) has_later: bool,
    /// Where request bodies are kept, if that is limited.
    pub(crate) room: Option<Room>,
}

impl<S: Store> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            tenancy: self.tenancy.clone(),
            routes: Arc::clone(&self.routes),
            site: Arc::clone(&self.site),
            keys: Arc::clone(&self.keys),
            has_later: self.has_later,
            room: self.room.clone(),
        }
    }
}

impl<S: Store> Shared<S> {
    /// The key of a tenant's fingerprints; deriving it costs as much as using it.
    pub(crate) fn tenant_key(&self, tenant: &Tenant) -> TenantKey {
        if let Some(known) = self.keys.get(tenant) {
            return known;
        }
        let derived = self.engine.salt().tenant_key(tenant);
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

/// Where the layer's own pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What a problem's `type` starts with: the address of the pages in `docs/errors`.
    ///
    /// By default they are served by the layer itself.
    pub errors: String,
    /// Where the layer answers for its policy, its errors and its operations.
    pub home: String,
}

impl Default for Site {
    fn default() -> Self {
        let home = "/.well-known/idempotency";
        Self { errors: format!("{home}/errors"), home: home.to_owned() }
    }
}

impl Site {
    /// The address of the page that explains a code.
    pub(crate) fn page(&self, code: Code) -> String {
        format!("{}/{}", self.errors, code.code())
    }
}
