//! The layer of `hapax` in the service itself.

use std::{
    error::Error,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{Router, http::Method};
use hapax::{
    Engine, InvalidPolicy, Options, Policy, Salt, Store, Timestamp, memory, postgres, sqlite,
    tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment},
};

use crate::{args::Serve, effect, ways::Keeping};

/// The effect behind the layer, by default settings but for the lease.
pub(crate) async fn protect(
    inner: Router,
    serve: &Serve,
) -> Result<Router, Box<dyn Error + Send + Sync>> {
    match serve.way.keeping() {
        Keeping::Memory => layered(inner, memory()?, serve.lease),
        Keeping::Postgres => {
            let address: postgres::Address = serve.store.parse()?;
            let store = postgres::Store::connect(&address, postgres::Options::default()).await?;
            layered(inner, store, serve.lease)
        }
        Keeping::File => layered(inner, file(&serve.store)?, serve.lease),
        Keeping::Redis(_) => Err("hapax has no store on Redis".into()),
    }
}

fn layered<S: Store>(
    inner: Router,
    store: S,
    lease: Option<Duration>,
) -> Result<Router, Box<dyn Error + Send + Sync>> {
    let engine = Engine::start(store, Options::default());
    let treatment = Treatment::Protect(protection(lease)?);
    let routes =
        Routes::new(Treatment::PassThrough)?.route(Method::POST, effect::PATH, treatment)?;
    Ok(inner.layer(IdempotencyLayer::new(engine, Tenancy::credential(), routes)?))
}

fn protection(lease: Option<Duration>) -> Result<Protection, InvalidPolicy> {
    let usual = Protection::default();
    let Some(lease) = lease else { return Ok(usual) };
    let policy = Policy::new(lease, usual.policy.retention(), usual.policy.recovery())?;
    Ok(Protection { policy, timeout: within(lease), ..usual })
}

/// How long a handler may work under this lease: the layer wants it to be shorter.
pub(super) fn within(lease: Duration) -> Duration {
    lease * 4 / 5
}

/// What is forgotten with the process.
pub(super) fn memory() -> Result<memory::Store, Box<dyn Error + Send + Sync>> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt)?;
    Ok(memory::Store::new(Salt::from_bytes(salt), system_now))
}

/// One file, every commit synced.
pub(super) fn file(path: &str) -> Result<sqlite::Store, sqlite::OpenError> {
    sqlite::Store::open(path, sqlite::Options::default())
}

#[expect(clippy::disallowed_methods, reason = "this is the memory store's clock")]
fn system_now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::ZERO.plus(since_epoch.unwrap_or_default())
}
