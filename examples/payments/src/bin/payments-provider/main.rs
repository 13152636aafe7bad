//! A payment provider to practise with: it charges once per key, and misbehaves when told to.

mod ledger;
mod mood;

use std::{error::Error, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use clap::Parser;
use futures_util::stream;
use tokio::{net::TcpListener, time::sleep};

use self::{
    ledger::{Charge, Ledger, Order, Refused},
    mood::{Mood, Moods},
};

/// A payment provider to practise with: it charges once per key, and misbehaves when told to.
#[derive(Debug, Parser)]
struct Settings {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:4000")]
    listen: SocketAddr,
    /// The file its charges are written to.
    #[arg(long, default_value = "provider-ledger.jsonl")]
    ledger: PathBuf,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::parse();
    let provider =
        Arc::new(Provider { ledger: Ledger::open(&settings.ledger)?, moods: Moods::default() });
    let app = Router::new()
        .route("/charges", post(charge))
        .route("/charges/{key}", get(find))
        .route("/ledger", get(ledger))
        .route("/behave", post(behave))
        .with_state(provider);
    let listener = TcpListener::bind(settings.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

struct Provider {
    ledger: Ledger,
    moods: Moods,
}

/// Longer than any client of this provider waits.
const LATE: Duration = Duration::from_secs(3);

async fn charge(
    State(provider): State<Arc<Provider>>,
    headers: HeaderMap,
    Json(order): Json<Order>,
) -> Response {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let Some(key) = key.filter(|key| !key.is_empty()) else {
        return (StatusCode::BAD_REQUEST, "send an Idempotency-Key").into_response();
    };
    let mood = provider.moods.next();
    match mood {
        Mood::Hang => std::future::pending().await,
        Mood::FailBefore => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Decline => return StatusCode::PAYMENT_REQUIRED.into_response(),
        Mood::Behave | Mood::FailAfter | Mood::Late | Mood::Lose => {}
    }
    let charge = match provider.ledger.charge(key, order) {
        Ok(charge) => charge,
        Err(Refused::KeyReused) => return StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        Err(Refused::Io(error)) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
        }
    };
    match mood {
        Mood::FailAfter => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Lose => lost().into_response(),
        Mood::Late => {
            sleep(LATE).await;
            Json(charge).into_response()
        }
        Mood::Behave | Mood::Hang | Mood::FailBefore | Mood::Decline => {
            Json(charge).into_response()
        }
    }
}

/// A body that breaks, so that the connection is closed before the answer is complete.
fn lost() -> Body {
    Body::from_stream(stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("lost"))]))
}

async fn find(State(provider): State<Arc<Provider>>, Path(key): Path<String>) -> Response {
    match provider.ledger.find(&key) {
        Some(charge) => Json(charge).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn ledger(State(provider): State<Arc<Provider>>) -> Json<Vec<Charge>> {
    Json(provider.ledger.all())
}

async fn behave(State(provider): State<Arc<Provider>>, Json(moods): Json<Vec<Mood>>) -> StatusCode {
    provider.moods.expect(moods);
    StatusCode::NO_CONTENT
}
