//! The crate `idempotent`: its layer on its stores in memory and on Redis.

use std::{error::Error, time::Duration};

use axum::Router;
use idempotent::{
    IdempotencyStore, memory::MemoryStore, middleware::IdempotencyLayer, valkey::ValkeyStore,
};

use crate::{args::Serve, ways::Keeping};

/// The effect behind its layer, by default settings but for the lease. Keys are scoped by the
/// credential, as ours are; without that hook, callers share their keys.
pub(crate) async fn protect(
    inner: Router,
    serve: &Serve,
) -> Result<Router, Box<dyn Error + Send + Sync>> {
    match serve.way.keeping() {
        Keeping::Memory => Ok(layered(inner, MemoryStore::builder().try_build()?, serve.lease)),
        Keeping::Redis(_) => {
            let store = ValkeyStore::with_url(&serve.store).try_build().await?;
            Ok(layered(inner, store, serve.lease))
        }
        Keeping::File | Keeping::Postgres => Err("idempotent has no SQL store".into()),
    }
}

fn layered<S>(inner: Router, store: S, lease: Option<Duration>) -> Router
where
    S: IdempotencyStore + Clone + Send + Sync + 'static,
{
    let mut layer = IdempotencyLayer::new(store).require_key(true).scope(|parts| {
        let credential = parts.headers.get("authorization")?;
        credential.to_str().ok().map(str::to_owned)
    });
    if let Some(lease) = lease {
        layer = layer.processing_ttl(lease);
    }
    inner.layer(layer)
}
