//! The layer, and what it shares with every service it makes.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use hapax_core::{Database, OperationId, Salt, TransactionError};
use hapax_engine::Engine;
use http::{HeaderMap, request::Parts};
use tower_layer::Layer;

use super::{
    execution::{background::Later, transactional::SameTransaction},
    mode::{Leased, Mode, ModeBehaviour},
    observation::Observer,
    options::Protection,
    requests::{
        cors::Cors,
        front::Front,
        room::Room,
        route::{InvalidRoute, Routes},
        tenancy::Tenancy,
    },
    responses::code::Code,
    service::Idempotency,
};

/// Protects a service: one execution per key, every later request answered with the first answer.
///
/// Put it inside what authenticates and outside what limits the rate of new work: replays are free.
/// Its [`Mode`] says where a request runs: [`Leased`] by an engine, for effects anywhere, or in the
/// [`SameTransaction`] as the handler's own writes.
///
/// ```
/// use axum::{Router, body::Body, routing::post};
/// use hapax_tower::{IdempotencyLayer, Tenancy};
/// use tower::ServiceExt;
///
/// # use hapax_core::{Salt, Timestamp, memory};
/// # use hapax_engine::{Engine, Options};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # let engine = Engine::start(store, Options::default());
/// let layer = IdempotencyLayer::everywhere(engine, Tenancy::credential()).optional_key();
/// let app = Router::new().route("/payments", post(|| async { "paid" })).layer(layer);
/// for is_replay in [false, true] {
///     let request = http::Request::post("/payments").header("authorization", "Bearer acme");
///     let request = request.header("idempotency-key", "order-17").body(Body::empty())?;
///     let answer = app.clone().oneshot(request).await?;
///     assert_eq!(answer.headers().contains_key("idempotent-replayed"), is_replay);
/// }
/// # Ok(())
/// # }
/// ```
pub struct IdempotencyLayer<M = Leased> {
    shared: Arc<Shared<M>>,
}

impl IdempotencyLayer {
    /// A layer that protects every request that changes something, as [`Protection::default`] says
    /// until it is told otherwise ([`IdempotencyLayer::protect`] and its kin).
    pub fn everywhere(engine: Engine, tenancy: Tenancy) -> Self {
        let front =
            Front::new(Arc::clone(engine.tenant_keys()), tenancy, Arc::default(), Arc::default());
        Self::of(Leased { engine, has_later: false }, front)
    }

    /// A layer that treats requests as these routes say, and runs everything while its client waits.
    pub fn new(engine: Engine, tenancy: Tenancy, routes: Routes) -> Result<Self, InvalidRoute> {
        let mode = Leased { engine, has_later: false };
        mode.check(&routes)?;
        let front = Front::new(
            Arc::clone(mode.engine.tenant_keys()),
            tenancy,
            Arc::new(routes),
            Arc::default(),
        );
        Ok(Self::of(mode, front))
    }

    /// A layer that also accepts requests to be run later, on the routes and pages of `later`.
    ///
    /// The engine must have been started with [`Later::finisher`]. Routes that `later` is given
    /// afterwards are those of the next layer.
    pub fn with_later(engine: Engine, tenancy: Tenancy, later: &Later) -> Self {
        let front = Front::new(
            Arc::clone(engine.tenant_keys()),
            tenancy,
            later.routes(),
            Arc::clone(later.site()),
        );
        later.share(&front.routes);
        Self::of(Leased { engine, has_later: true }, front)
    }

    /// The same layer, keeping these headers with every request that may be run later, in place of
    /// what its client said under their names: where it came from, which nobody knows any more when
    /// it is run.
    #[must_use]
    pub fn with_origin(self, origin: impl Fn(&Parts) -> HeaderMap + Send + Sync + 'static) -> Self {
        self.with(|front| front.origin = Some(Arc::new(origin)))
    }
}

impl<D: Database> IdempotencyLayer<SameTransaction<D>> {
    /// A layer that runs each request in a transaction of this database, which commits together with
    /// the answer that every later request gets.
    ///
    /// The handler takes its transaction with [`Tx`](crate::Tx), writes through it and answers; the
    /// commit is the layer's. A 4xx is kept without the handler's writes; a 5xx, a panic or the
    /// timeout rolls everything back, and the key is free.
    ///
    /// Asks the database for its salt, so that a schema that is missing or too old is told at once. A
    /// route may neither accept requests for later nor use the dialect of repeatable requests: a
    /// transaction has no later.
    pub async fn connect(
        database: D,
        tenancy: Tenancy,
        routes: Routes,
    ) -> Result<Self, ConnectError> {
        let mode = SameTransaction::connect(database).await?;
        mode.check(&routes)?;
        let front = Front::new(mode.tenant_keys(), tenancy, Arc::new(routes), Arc::default());
        Ok(Self::of(mode, front))
    }

    /// A layer that runs every request that changes something in a transaction, as
    /// [`Protection::default`] says until it is told otherwise.
    pub fn in_transactions(mode: SameTransaction<D>, tenancy: Tenancy) -> Self {
        let front = Front::new(mode.tenant_keys(), tenancy, Arc::default(), Arc::default());
        Self::of(mode, front)
    }
}

impl<M: Mode> IdempotencyLayer<M> {
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

    /// The same layer, with this one watching the requests of routes that are
    /// [observed](crate::Treatment::Observe).
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        self.with(|front| front.observer = observer)
    }

    /// Changes how it protects what no route names.
    pub(crate) fn with_protection(
        self,
        change: impl FnOnce(&mut Protection),
    ) -> Result<Self, InvalidRoute> {
        if self.shared.mode.has_later() {
            return Err(InvalidRoute::SaidByLater);
        }
        let mut front = self.shared.front.clone();
        let routes = Arc::make_mut(&mut front.routes);
        routes.protect_otherwise(change)?;
        self.shared.mode.check(routes)?;
        Ok(Self::of(self.shared.mode.clone(), front))
    }

    fn with(self, change: impl FnOnce(&mut Front)) -> Self {
        let mut front = self.shared.front.clone();
        change(&mut front);
        Self::of(self.shared.mode.clone(), front)
    }

    fn of(mode: M, front: Front) -> Self {
        Self { shared: Arc::new(Shared { mode, front }) }
    }
}

impl<M: Mode, Inner> Layer<Inner> for IdempotencyLayer<M> {
    type Service = Idempotency<Inner, M>;

    fn layer(&self, inner: Inner) -> Self::Service {
        Idempotency::new(inner, Arc::clone(&self.shared))
    }
}

impl<M> Clone for IdempotencyLayer<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M> fmt::Debug for IdempotencyLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layer = f.debug_struct("IdempotencyLayer");
        let front = &self.shared.front;
        layer.field("tenancy", &front.tenancy).field("routes", &front.routes);
        layer.finish_non_exhaustive()
    }
}

/// What every request needs to know.
pub(crate) struct Shared<M> {
    pub(crate) mode: M,
    pub(crate) front: Front,
}

/// Why a layer could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A route cannot be run in a transaction.
    #[error(transparent)]
    Route(#[from] InvalidRoute),
    /// The database cannot be used.
    #[error("the database cannot be used")]
    Database(#[from] TransactionError),
}

/// Where the layer's own pages are.
///
/// ```
/// use hapax_tower::{Code, Site};
///
/// let site = Site::new("/idempotency").errors_at("https://docs.example.com/errors");
/// let refusal = Code::KeyMissing.answer("Send an Idempotency-Key.", &site);
/// assert_eq!(refusal.status(), 400);
/// ```
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
