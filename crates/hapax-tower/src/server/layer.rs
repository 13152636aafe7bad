//! The layer, and what it shares with every service it makes.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use hapax_core::{OperationId, Salt, Store};
use hapax_engine::Engine;
use http::{HeaderMap, request::Parts};
use tower_layer::Layer;

use super::{
    code::Code,
    cors::Cors,
    front::Front,
    later::Later,
    room::Room,
    route::{InvalidRoute, Routes},
    service::Idempotency,
    tenancy::Tenancy,
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
        let front = Front::new(engine.salt(), tenancy, Arc::new(routes), Arc::default());
        Ok(Self::of(Shared { engine, front, has_later: false }))
    }

    /// A layer that also accepts requests to be run later, on the routes and pages of `later`.
    ///
    /// The engine must have been started with [`Later::finisher`]. Routes that `later` is given
    /// afterwards are those of the next layer.
    pub fn with_later(engine: Engine<S>, tenancy: Tenancy, later: &Later<S>) -> Self {
        let front = Front::new(engine.salt(), tenancy, later.routes(), Arc::clone(later.site()));
        later.share(&front.routes);
        Self::of(Shared { engine, front, has_later: true })
    }

    /// The same layer with its pages elsewhere.
    #[must_use]
    pub fn site(self, site: Site) -> Self {
        self.with(|front| front.answer_at(Arc::new(site)))
    }

    /// The same layer, keeping at most this many bytes of protected requests in memory at once,
    /// over all its services and clones. Room is taken as the bytes of a request come; one for which
    /// there is none is refused with 503. How much of it one connection may take is said by a
    /// [`Share`](crate::Share) in the extensions of its requests.
    #[must_use]
    pub fn buffer_at_most(self, bytes: usize) -> Self {
        self.with(|front| front.room = Some(Room::of(bytes)))
    }

    /// The same layer, telling browsers which pages of other origins may use protected routes and read
    /// what they answer. Without it nothing is said about that, and refusals cannot be read by pages of
    /// other origins.
    #[must_use]
    pub fn cors(self, cors: Cors) -> Self {
        self.with(|front| front.cors = Some(Arc::new(cors)))
    }

    /// The same layer, keeping these headers with every request that may be run later, in place of
    /// what its client said under their names: where it came from, which nobody knows any more when
    /// it is run.
    #[must_use]
    pub fn with_origin(self, origin: impl Fn(&Parts) -> HeaderMap + Send + Sync + 'static) -> Self {
        self.with(|front| front.origin = Some(Arc::new(origin)))
    }

    fn with(self, change: impl FnOnce(&mut Front)) -> Self {
        let mut shared = Shared::clone(&self.shared);
        change(&mut shared.front);
        Self::of(shared)
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
        let front = &self.shared.front;
        layer.field("tenancy", &front.tenancy).field("routes", &front.routes);
        layer.finish_non_exhaustive()
    }
}

/// What every request needs to know.
pub(crate) struct Shared<S: Store> {
    pub(crate) engine: Engine<S>,
    pub(crate) front: Front,
    /// Whether requests can be run without their client.
    pub(crate) has_later: bool,
}

impl<S: Store> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), front: self.front.clone(), has_later: self.has_later }
    }
}

/// Where the layer's own pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What a problem's `type` starts with: the address of the pages in `docs/errors`.
    errors: String,
    /// Where the layer answers for its policy, its errors and its operations.
    pub(crate) home: String,
    /// Signs the addresses of operations; known once a layer answers there.
    salt: OnceLock<Salt>,
}

impl Default for Site {
    fn default() -> Self {
        Self::new("/.well-known/idempotency")
    }
}

impl Site {
    /// Pages under this path. Those of the errors are served by the layer itself.
    pub fn new(home: impl Into<String>) -> Self {
        let home = home.into();
        Self { errors: format!("{home}/errors"), home, salt: OnceLock::new() }
    }

    /// The same, with a problem's `type` starting with another address of the pages in
    /// `docs/errors`.
    #[must_use]
    pub fn errors_at(self, errors: impl Into<String>) -> Self {
        Self { errors: errors.into(), ..self }
    }

    /// Answers with the addresses that the store of this salt knows. All layers of one site share
    /// a store.
    pub(crate) fn sign_with(&self, salt: Salt) {
        let known = self.salt.get_or_init(|| salt);
        assert!(*known == salt, "two stores cannot share the pages of one site");
    }

    /// The address of the page that explains a code.
    pub(crate) fn page(&self, code: Code) -> String {
        format!("{}/{}", self.errors, code.code())
    }

    /// The path where an operation can be looked at: nobody can make one up. `None` until a layer
    /// answers there.
    pub(crate) fn operation(&self, id: OperationId) -> Option<String> {
        let salt = self.salt.get()?;
        Some(format!("{}/operations/{}", self.home, salt.signed(id)))
    }
}
