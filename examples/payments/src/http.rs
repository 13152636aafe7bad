//! The request that brings a payment, and every answer to it.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, HeaderValue, Response, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
    },
    routing::post,
};
use hapax::{
    Body as Kept, Engine, Operation, Outcome, Ran, Scope, Tenant, Workflows,
    postgres::Store,
    tower::{Code, KeyForm, parse_key},
};
use hapax_core::Faults;
use serde_json::{Value, json};

use crate::{books::Books, pay::Order};

/// What the keys of this service belong to.
pub(crate) const SCOPE: &str = "POST /payments";

#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) engine: Engine<Store>,
    pub(crate) workflows: Workflows<Store>,
    pub(crate) books: Books,
    pub(crate) faults: Faults,
}

impl Front {
    pub(crate) fn router(self) -> Router {
        Router::new().route("/payments", post(pay).get(list)).with_state(Arc::new(self))
    }

    /// Brings a payment: runs it, or says what became of it.
    async fn bring(&self, operation: &Operation, order: &Order) -> Response<Body> {
        let Ok(request) = serde_json::to_vec(order) else {
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, "this order cannot be kept");
        };
        let ran = self.workflows.run(&self.engine, operation, request.into()).await;
        if let Err(fault) = self.faults.at("answering") {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, &fault.to_string());
        }
        match ran {
            Ok(Ran::Answered(outcome)) => answer(&outcome, false),
            Ok(Ran::Replayed(outcome)) => answer(&outcome, true),
            Ok(Ran::Busy { lease_left: after } | Ran::Later { after }) => {
                let told = refuse(StatusCode::CONFLICT, "this payment is being worked on");
                ask_again(told, after)
            }
            Ok(Ran::Mismatch(_)) => {
                refuse(StatusCode::UNPROCESSABLE_ENTITY, "this key was used for another order")
            }
            Ok(Ran::Gone { .. }) => refuse(StatusCode::GONE, "this key was used long ago"),
            Ok(ran) => refuse(StatusCode::CONFLICT, &format!("somebody must look: {ran:?}")),
            Err(error) => {
                tracing::warn!(%error, "a payment has no answer yet");
                let told = refuse(StatusCode::SERVICE_UNAVAILABLE, "ask again with the same key");
                ask_again(told, Duration::from_secs(1))
            }
        }
    }
}

async fn pay(State(front): State<Arc<Front>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let operation = match operation(&headers) {
        Ok(operation) => operation,
        Err(refused) => return refused,
    };
    match serde_json::from_slice(&body) {
        Ok(order) => front.bring(&operation, &order).await,
        Err(error) => refuse(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    }
}

async fn list(State(front): State<Arc<Front>>) -> Result<Json<Vec<Value>>, Response<Body>> {
    let all = front.books.all().await;
    all.map(Json).map_err(|error| refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()))
}

/// Whose payment it is, and under which key.
///
/// The caller is believed here. In a service of your own the tenant is who was authenticated.
fn operation(headers: &HeaderMap) -> Result<Operation, Response<Body>> {
    let caller =
        headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let tenant = caller.and_then(|caller| Tenant::parse(caller).ok());
    let tenant = tenant.ok_or_else(|| refuse(StatusCode::UNAUTHORIZED, "say who you are"))?;
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) => parse_key(key.as_bytes(), KeyForm::QuotedOrBare),
        (None, _) => Err(Code::KeyMissing),
        (Some(_), Some(_)) => Err(Code::KeyRepeated),
    };
    let key = key.map_err(|code| refuse(code.status(), code.title()))?;
    let scope = Scope::parse(SCOPE)
        .map_err(|error| refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))?;
    Ok(Operation::new(tenant, scope, key))
}

fn answer(outcome: &Outcome, replayed: bool) -> Response<Body> {
    let body = match outcome.body() {
        Kept::Kept(body) => Body::from(body.clone()),
        _ => Body::empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(outcome.status()).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if replayed {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// A problem document.
fn refuse(status: StatusCode, title: &str) -> Response<Body> {
    let problem = json!({ "type": "about:blank", "status": status.as_u16(), "title": title });
    let mut response = Response::new(Body::from(problem.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn ask_again(mut told: Response<Body>, after: Duration) -> Response<Body> {
    let seconds = after.as_millis().div_ceil(1000).max(1).to_string();
    if let Ok(seconds) = HeaderValue::from_str(&seconds) {
        told.headers_mut().insert(RETRY_AFTER, seconds);
    }
    told
}
