//! Signing in by a token, and out.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State, rejection::BytesRejection},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, SET_COOKIE},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    OpenedBy, browser, oidc,
    session::{self, SessionHolder},
};
use crate::admin::{
    AdminState, answer,
    documents::{LoginDocument, ProviderDocument, SessionDocument},
    problem::AdminProblem,
};

/// Largest body of somebody who signs in, in bytes.
const LOGIN_BYTES_MAX: usize = 8 << 10;

/// `/session`: who somebody is, signing in, signing out.
pub(in crate::admin) fn routes(state: &AdminState) -> Router<AdminState> {
    Router::new()
        .route("/session", get(show).post(open).delete(close))
        .merge(oidc::start_routes())
        .method_not_allowed_fallback(async || AdminProblem::no_such_method())
        .layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX))
        .layer(middleware::from_fn_with_state(state.clone(), from_the_page))
        .merge(oidc::finish_routes())
}

async fn from_the_page(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Result<Response, AdminProblem> {
    browser::checked(&state.access, &request)?;
    Ok(next.run(request).await)
}

/// Answers everybody: a page has to know whether to ask for a token.
async fn show(State(state): State<AdminState>, request: Request) -> Response {
    let id = session::offered(request.headers(), &state.access);
    let holder = id.and_then(|id| state.sessions.holder(&id));
    who(&state, holder.as_ref())
}

async fn open(
    State(state): State<AdminState>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let body = body.map_err(|refused| AdminProblem::too_large(refused.body_text()))?;
    let login: LoginDocument = serde_json::from_slice(&body)
        .map_err(|error| AdminProblem::invalid(format!("the body: {error}")))?;
    let role = state.access.role_of(login.token.trim().as_bytes());
    let Some(role) = role else {
        tracing::warn!("somebody tried to sign in to the dashboard with a wrong token");
        return Err(AdminProblem::wrong_token());
    };
    let id = state.sessions.open(role, OpenedBy::Token);
    let id = id.map_err(|_| AdminProblem::no_randomness())?;
    let cookie = [(SET_COOKIE, id.cookie(&state.access))];
    let holder = SessionHolder { role, opened_by: OpenedBy::Token };
    Ok((cookie, who(&state, Some(&holder))).into_response())
}

async fn close(State(state): State<AdminState>, request: Request) -> Response {
    if let Some(id) = session::offered(request.headers(), &state.access) {
        state.sessions.close(&id);
    }
    let headers =
        [(SET_COOKIE, session::no_cookie(&state.access)), (CACHE_CONTROL, "no-store".to_owned())];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn who(state: &AdminState, holder: Option<&SessionHolder>) -> Response {
    let person = holder.and_then(|holder| holder.opened_by.person());
    let provider = state.sign_in.as_ref().map(|sign_in| ProviderDocument {
        called: sign_in.called().to_owned(),
        away: sign_in.is_away(),
    });
    answer(&SessionDocument {
        configured: state.access.has_token(),
        provider,
        role: holder.map(|holder| holder.role.as_str().to_owned()),
        person: person.map(|person| person.name().to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
