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
    response::IntoResponse,
    routing::post,
};
use hapax::{
    Body as Kept, Engine, Operation, Outcome, Ran, Scope, Tenant, Workflows,
    tower::{Code, KeyForm, parse_key},
};
use hapax_core::Faults;
use serde_json::{Value, json};

use crate::{books::Books, order::Order};

/// What the keys of this service belong to.
pub(crate) const SCOPE: &str = "POST /payments";

#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) engine: Engine,
    pub(crate) workflows: Workflows,
    pub(crate) books: Books,
    pub(crate) faults: Faults,
}

impl Front {
    pub(crate) fn router(self) -> Router {
        Router::new().route("/payments", post(pay).get(list)).with_state(Arc::new(self))
    }

    /// Brings a payment: runs it, or says what became of it.
    async fn bring(&self, operation: &Operation, order: &Order) -> Result<Response<Body>, Refusal> {
        let request = serde_json::to_vec(order)
            .map_err(|error| refuse(StatusCode::UNPROCESSABLE_ENTITY, &error))?;
        let ran = self.workflows.run(&self.engine, operation, request.into()).await;
        let fault = |fault| refuse(StatusCode::INTERNAL_SERVER_ERROR, &fault);
        self.faults.at("answering").map_err(fault)?;
        let refusal = match ran {
            Ok(Ran::Answered(answered)) => return Ok(answer(&answered.outcome, false)),
            Ok(Ran::Replayed(outcome)) => return Ok(answer(&outcome, true)),
            Ok(Ran::Busy { lease_left: after } | Ran::Later { after }) => {
                refuse(StatusCode::CONFLICT, "this payment is being worked on").ask_again(after)
            }
            Ok(Ran::Mismatch(_)) => {
                refuse(StatusCode::UNPROCESSABLE_ENTITY, "this key was used for another order")
            }
            Ok(Ran::Gone { .. }) => refuse(StatusCode::GONE, "this key was used long ago"),
            Ok(Ran::InDoubt { .. } | _) => {
                refuse(StatusCode::CONFLICT, "nobody knows what became of it: somebody must look")
            }
            Err(error) => {
                tracing::warn!(%error, "a payment has no answer yet");
                let status = StatusCode::SERVICE_UNAVAILABLE;
                refuse(status, "ask again with the same key").ask_again(Duration::from_secs(1))
            }
        };
        Err(refusal)
    }
}

async fn pay(
    State(front): State<Arc<Front>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, Refusal> {
    let operation = operation(&headers)?;
    let order = serde_json::from_slice(&body)
        .map_err(|error| refuse(StatusCode::UNPROCESSABLE_ENTITY, &error))?;
    front.bring(&operation, &order).await
}

async fn list(State(front): State<Arc<Front>>) -> Result<Json<Vec<Value>>, Refusal> {
    let all = front.books.all().await;
    all.map(Json).map_err(|error| refuse(StatusCode::SERVICE_UNAVAILABLE, &error))
}

/// Whose payment it is, and under which key.
///
/// The caller is believed here. In a service of your own the tenant is who was authenticated.
fn operation(headers: &HeaderMap) -> Result<Operation, Refusal> {
    let caller = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let caller = caller.and_then(|caller| caller.strip_prefix(b"Bearer "));
    let tenant = caller.and_then(|caller| Tenant::parse(caller).ok());
    let tenant = tenant.ok_or_else(|| refuse(StatusCode::UNAUTHORIZED, "say who you are"))?;
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) => parse_key(key.as_bytes(), KeyForm::QuotedOrBare),
        (None, _) => Err(Code::KeyMissing),
        (Some(_), Some(_)) => Err(Code::KeyRepeated),
    };
    let key = key.map_err(|code| refuse(code.status(), code.title()))?;
    let scope = Scope::parse(SCOPE);
    let scope = scope.map_err(|error| refuse(StatusCode::INTERNAL_SERVER_ERROR, &error))?;
    Ok(Operation::new(tenant, scope, key))
}

fn answer(outcome: &Outcome, replayed: bool) -> Response<Body> {
    let body = match outcome.body() {
        Kept::Kept(body) => Body::from(body.clone()),
        Kept::NotKept { .. } | _ => Body::empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(outcome.status()).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if replayed {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// Why there is no payment in the answer, and when to ask again if that helps.
struct Refusal {
    status: StatusCode,
    title: String,
    after: Option<Duration>,
}

fn refuse(status: StatusCode, title: &(impl ToString + ?Sized)) -> Refusal {
    Refusal { status, title: title.to_string(), after: None }
}

impl Refusal {
    fn ask_again(self, after: Duration) -> Self {
        Self { after: Some(after), ..self }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let Self { status, title, after } = self;
        let problem = json!({ "type": "about:blank", "status": status.as_u16(), "title": title });
        let mut response = Response::new(Body::from(problem.to_string()));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        if let Some(after) = after {
            let seconds = u64::try_from(after.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}
