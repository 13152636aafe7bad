//! Runs requests nobody waits for: those accepted for later, and those whose owner vanished.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hapax_core::{Attempt, AttemptEnd, Policy, Record};
use hapax_engine::{Finisher, Permit};
use http::{Request, Response};
use tokio::{sync::watch, time::Instant};
use tower_service::Service;
use tracing::Instrument;

use crate::{
    body::{Body, BoxError},
    server::{
        execution::{unit::AttemptRun, usual_time::UsualTime},
        layer::Site,
        options::Protection,
        requests::{caller_signals::CallerSignals, route::Routes, stored_request},
        span::span,
        verdict::Verdict,
    },
};

/// Runs stored requests, in this process or the next one. Clones share everything.
///
/// Give [`Later::finisher`] to the engine's options, [`Later::serve`] the service without its layer,
/// and the layer to [`IdempotencyLayer::with_later`](crate::IdempotencyLayer::with_later). A
/// request kept for later has no credentials, unless its route keeps them, and no extensions but the attempt and its operation.
///
/// ```
/// use axum::{Router, routing::post};
/// use hapax_engine::{Engine, Options};
/// use hapax_tower::{
///     IdempotencyLayer, InFlight, Later, Protection, Routes, Site, Tenancy, Treatment,
/// };
///
/// # use hapax_core::{Salt, Timestamp, memory};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), hapax_tower::InvalidRoute> {
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let accepted = Protection { in_flight: InFlight::Accept, ..Protection::default() };
/// let later = Later::new(Routes::new(Treatment::Protect(accepted))?, Site::default());
/// let options = Options { finisher: Some(later.finisher()), ..Options::default() };
/// let engine = Engine::start(store, options);
///
/// let bare: Router = Router::new().route("/reports", post(|| async { "written" }));
/// later.serve(bare.clone());
/// let app = bare.layer(IdempotencyLayer::with_later(engine, Tenancy::credential(), &later));
/// # drop(app);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Later {
    shared: Arc<Shared>,
}

struct Shared {
    routes: ArcSwap<Routes>,
    site: Arc<Site>,
    service: watch::Sender<Option<Runner>>,
    prepare: OnceLock<Box<PrepareFn>>,
}

type PrepareFn = dyn Fn(&mut Request<Bytes>, Attempt) + Send + Sync;

type Runner = Arc<dyn Fn(AttemptRun) -> Running + Send + Sync>;
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Later {
    /// Runs requests as these routes say.
    pub fn new(routes: Routes, site: Site) -> Self {
        let (service, _) = watch::channel(None);
        let routes = ArcSwap::from_pointee(routes);
        let prepare = OnceLock::new();
        Self { shared: Arc::new(Shared { routes, site: Arc::new(site), service, prepare }) }
    }

    /// What the engine calls for operations nobody waits for.
    pub fn finisher(&self) -> Finisher {
        let (policies, finishing) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        Finisher::new(
            move |record| policies.policy_of(record),
            move |permit, _recovery| finish(Arc::clone(&finishing), permit),
        )
    }

    /// The service that stored requests are given to; until it is known they wait.
    pub fn serve<Inner, B>(&self, inner: Inner)
    where
        Inner: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        Inner::Future: Send,
        Inner::Error: Into<BoxError> + Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let run = move |unit: AttemptRun| -> Running { Box::pin(unit.run(inner.clone(), None)) };
        self.shared.service.send_replace(Some(Arc::new(run)));
    }

    /// Shows each stored request to `prepare` before it is run, which may add extensions for the service:
    /// those that it came with are gone. The first to be given stays.
    pub fn prepare_with(
        &self,
        prepare: impl Fn(&mut Request<Bytes>, Attempt) + Send + Sync + 'static,
    ) {
        let _ = self.shared.prepare.set(Box::new(prepare));
    }

    /// Runs requests as these routes say from now on; a layer made from now on has them too.
    pub fn replace(&self, routes: Routes) {
        self.shared.routes.store(Arc::new(routes));
    }

    /// Runs requests by the routes of this layer, which know the secrets of its tenancy too.
    pub(crate) fn share(&self, routes: &Arc<Routes>) {
        self.shared.routes.store(Arc::clone(routes));
    }

    pub(crate) fn routes(&self) -> Arc<Routes> {
        self.shared.routes.load_full()
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.shared.site
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").field("routes", &self.routes()).finish_non_exhaustive()
    }
}

impl Shared {
    fn policy_of(&self, record: &Record) -> Policy {
        let protection = self.kept(record).and_then(|kept| kept.protection);
        protection.map_or_else(Policy::default, |protection| protection.policy)
    }

    /// The stored request, and how its route is protected now.
    fn kept(&self, record: &Record) -> Option<KeptRequest> {
        let request = stored_request::read(record.request()?.clone())?;
        let (parts, body) = request.into_parts();
        let routes = self.routes.load();
        let (route, protection) = routes.find(&parts);
        Some(KeptRequest {
            protection: protection.map(Arc::clone),
            usual_time: Arc::clone(routes.usual_time(route)),
            request: Request::from_parts(parts, body),
        })
    }
}

/// A stored request, and what is known of its route now.
struct KeptRequest {
    request: Request<Bytes>,
    protection: Option<Arc<Protection>>,
    usual_time: Arc<UsualTime>,
}

async fn finish(shared: Arc<Shared>, permit: Permit) {
    let mut service = shared.service.subscribe();
    let run = match service.wait_for(Option::is_some).await {
        Ok(run) => run.clone(),
        Err(_) => None,
    };
    match (run, shared.kept(permit.record())) {
        (Some(run), Some(KeptRequest { mut request, protection, usual_time })) => {
            let protection = protection.unwrap_or_default();
            if let Some(prepare) = shared.prepare.get() {
                prepare(&mut request, permit.attempt());
            }
            let span = span(&permit.record().operation, None);
            span.record("fence", permit.attempt().fence.get());
            span.record("decision", Verdict::TakenOver.as_str());
            let (said, site) = (CallerSignals::default(), Arc::clone(&shared.site));
            let unit = AttemptRun::new(permit, request, protection, said, site);
            let began = Instant::now();
            run(unit).instrument(span).await;
            usual_time.add(began.elapsed());
        }
        (_, _) => {
            let id = permit.attempt().id;
            tracing::error!(operation = %id, "a stored request cannot be run here; it is in doubt");
            let _ = permit.settle(AttemptEnd::NotRecovered).await;
        }
    }
}
