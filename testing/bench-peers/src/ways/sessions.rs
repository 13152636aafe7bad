//! The crate `axum-idempotent`, which keeps answers in sessions of the crate `ruts`.
//!
//! It stores nothing for a request without a session, so every client gets one first.

use std::{error::Error, sync::Arc};

use axum::{Router, http::StatusCode, routing::get};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::{
    CookieOptions, Session, SessionLayer,
    store::{SessionStore, Ttl, moka::MokaStore, postgres::PostgresStoreBuilder},
};
use sqlx::postgres::PgPoolOptions;
use tower_cookies::CookieManagerLayer;

use crate::{args::Serve, ways::Keeping};

/// Where a client gets a session.
pub(crate) const LOGIN: &str = "/login";

const KEPT_SECONDS: u32 = 24 * 60 * 60;
const POOL_CONNECTIONS: u32 = 20;

/// The effect behind its three layers, in the mode that takes the key from the header.
pub(crate) async fn protect(
    inner: Router,
    serve: &Serve,
) -> Result<Router, Box<dyn Error + Send + Sync>> {
    match serve.way.keeping() {
        Keeping::Memory => Ok(layered(inner, MokaStore::builder().build())),
        Keeping::Postgres => {
            let pool = PgPoolOptions::new().max_connections(POOL_CONNECTIONS);
            let pool = pool.connect(&serve.store).await?;
            let store = PostgresStoreBuilder::new(pool).create_table(true).build().await?;
            Ok(layered(inner, store))
        }
        Keeping::File | Keeping::Redis(_) => Err("axum-idempotent is not compared there".into()),
    }
}

fn layered<S: SessionStore>(inner: Router, store: S) -> Router {
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(None, true)
        .expire_after(i64::from(KEPT_SECONDS));
    let cookie = CookieOptions::build().name("session").max_age(KEPT_SECONDS.into()).path("/");
    inner
        .layer(IdempotentLayer::<S>::new(options))
        .route(LOGIN, get(login::<S>))
        .layer(SessionLayer::new(Arc::new(store)).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}

async fn login<S: SessionStore>(session: Session<S>) -> StatusCode {
    let Ok(kept) = Ttl::new(KEPT_SECONDS.into()) else { return StatusCode::INTERNAL_SERVER_ERROR };
    match session.set("user", &"bench".to_owned(), kept, None).await {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
