//! A webhook receiver that acts once on each event, and on nothing that is not signed.

use std::{
    error::Error,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hapax::{
    Hapax, InvalidPolicy, Policy, Recovery, RetainFrom, Retention,
    messaging::sink::webhook::{Secret, TOLERANCE, verify},
    sqlite::sqlx::migrate,
    sqlx_sqlite::Tx,
    tower::{ResultPolicy, Tenancy, TxError},
};
use serde_json::{Value, json};
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// Nothing here keeps an order from being thanked for twice.
const TABLES: &str =
    "CREATE TABLE IF NOT EXISTS mails (number INTEGER PRIMARY KEY, recipient TEXT NOT NULL)";

/// The largest event it takes, as large as one can be.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The receiver, with its mails and what it remembers of events in this file.
///
/// # Errors
///
/// If the file cannot be opened.
pub async fn app(
    file: &Path,
    secrets: Vec<Secret>,
) -> Result<Router, Box<dyn Error + Send + Sync>> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    migrate(&pool).await?;
    let (hapax, policy) = (Hapax::in_transactions_of(pool.clone()).await?, policy()?);
    let once = hapax.layer(Tenancy::single("shop")?).protect(|events| {
        events.policy = policy;
        // What was refused is not kept, so that it can be sent again when this receiver was mended.
        events.results = ResultPolicy::SuccessOnly;
    });
    // The last one is the outermost: what is not signed does not come near a key.
    let genuine = middleware::from_fn_with_state(Arc::new(secrets), genuine);
    let events = Router::new().route("/events", post(thank)).layer(once).layer(genuine);
    Ok(Router::new().route("/mails", get(mails)).with_state(pool).merge(events))
}

/// Events are remembered for longer than a sender is likely to replay them.
fn policy() -> Result<Policy, InvalidPolicy> {
    let window = Duration::from_secs(30 * 24 * 60 * 60);
    let retention = Retention { window, from: RetainFrom::Creation, tombstone: Duration::ZERO };
    let lease = Duration::from_secs(30);
    Policy::new(lease, retention, Recovery::Hold)
}

/// Lets pass what the sender signed. `Idempotency-Key`, by which the layer inside remembers, is
/// not covered by the signature, so it must be the id that is.
async fn genuine(
    State(secrets): State<Arc<Vec<Secret>>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    #[expect(clippy::disallowed_methods, reason = "how old a signature is, is told by a clock")]
    let now = SystemTime::now();
    match verify(&secrets, &head.headers, &body, now, TOLERANCE) {
        Ok(webhook) => {
            let key = head.headers.get("idempotency-key").and_then(|key| key.to_str().ok());
            if key.map(|key| key.trim_matches('"')) != Some(webhook.id) {
                return (StatusCode::BAD_REQUEST, "the key is not the event's id").into_response();
            }
        }
        Err(unverified) => {
            return (StatusCode::UNAUTHORIZED, unverified.to_string()).into_response();
        }
    }
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// Thanks for an order. The mail and the memory of the event are one commit.
async fn thank(mut tx: Tx, Json(order): Json<Value>) -> Result<(StatusCode, Json<Value>), TxError> {
    let Some(recipient) = order["customer"].as_str() else {
        let refused = json!({ "error": "`customer` is missing" });
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, Json(refused)));
    };
    let insert = sqlx::query("INSERT INTO mails (recipient) VALUES (?)").bind(recipient);
    insert.execute(&mut **tx).await?;
    Ok((StatusCode::OK, Json(json!({ "thanked": recipient }))))
}

async fn mails(State(pool): State<SqlitePool>) -> Result<Json<Vec<String>>, StatusCode> {
    let mails = sqlx::query_scalar("SELECT recipient FROM mails ORDER BY number");
    mails.fetch_all(&pool).await.map(Json).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}
