//! The two addresses of a sign-in: the page sends a browser to the first, the provider to the second.
//!
//! The first is asked for by the page, so it has to come from there. The second is asked for by another
//! site, the provider, with whatever address somebody made: it counts only with the cookie that this
//! browser was given at the first. That cookie is `SameSite=Lax`, so that it comes along, and lets
//! nobody do anything; the session is `SameSite=Strict`, as ever, and used by the page alone.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use hapax_core::OneLine;
use serde::Deserialize;

use super::{
    super::{browser::known_host, session},
    LoginRefusal, OidcSignIn, Returned, TokenFault,
    pending::{LOGIN_SPAN, PendingLogin},
};
use crate::admin::{
    AdminState,
    access::{AdminAccess, OpenedBy},
    dashboard,
    problem::AdminProblem,
};

/// Where a sign-in begins.
const START: &str = "/session/oidc";
/// Where it ends.
const CALLBACK: &str = "/session/oidc/callback";
/// Most bytes of the provider's own words that are repeated.
const SAID_BYTES_MAX: usize = 100;

/// Where a browser begins; whoever merges it sees to it that our own page sent it.
pub(in crate::admin) fn start_routes() -> Router<AdminState> {
    Router::new().route(START, get(start))
}

/// Where the provider sends it.
pub(in crate::admin) fn finish_routes() -> Router<AdminState> {
    Router::new().route(CALLBACK, get(finish))
}

async fn start(
    State(state): State<AdminState>,
    request: Request,
) -> Result<Response, AdminProblem> {
    let sign_in = configured(&state)?;
    let host = known_host(&state.access, &request)?;
    let Some(origin) = sign_in.origin(&host) else {
        return Ok(refusal_page(StatusCode::MISDIRECTED_REQUEST, sign_in, &sign_in.elsewhere()));
    };
    match sign_in.begin(format!("{origin}{CALLBACK}")).await {
        Ok((login, page)) => {
            let cookie = [(SET_COOKIE, login_cookie(&login, &state.access))];
            Ok((cookie, sent_to(&page)).into_response())
        }
        // The page of the dashboard says that the provider is away, and takes a token.
        Err(refusal @ LoginRefusal::Provider(_)) => {
            log(&refusal);
            Ok(sent_to("/"))
        }
        Err(refusal) => Ok(told(sign_in, &refusal)),
    }
}

/// What a provider sends along.
#[derive(Debug, Deserialize)]
struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    /// Who says it (RFC 9207).
    iss: Option<String>,
}

async fn finish(
    State(state): State<AdminState>,
    query: Result<Query<CallbackQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, AdminProblem> {
    let sign_in = configured(&state)?;
    known_host(&state.access, &request)?;
    let (parts, _) = request.into_parts();
    let mut response = match signed_in(&state, sign_in, query, &parts.headers).await {
        Ok(cookie) => ([(SET_COOKIE, cookie)], sent_to("/")).into_response(),
        Err(refusal) => told(sign_in, &refusal),
    };
    if let Ok(over) = no_login_cookie(&state.access).try_into() {
        response.headers_mut().append(SET_COOKIE, over);
    }
    Ok(response)
}

/// The cookie of a session that was begun.
async fn signed_in(
    state: &AdminState,
    sign_in: &OidcSignIn,
    query: Result<Query<CallbackQuery>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<String, LoginRefusal> {
    let Query(query) = query.map_err(|_| LoginRefusal::NotBegun)?;
    let browser = session::cookie_of(headers, &login_cookie_name(&state.access));
    let login = query.state.zip(browser);
    let login = login.and_then(|(state, browser)| sign_in.logins.take(&state, &browser));
    let login = login.ok_or(LoginRefusal::NotBegun)?;
    if query.iss.is_some_and(|issuer| issuer != sign_in.settings.issuer) {
        return Err(LoginRefusal::Token(TokenFault::Refused("it comes from another provider")));
    }
    if let Some(error) = query.error {
        return Err(LoginRefusal::Denied { error });
    }
    let code = query.code.ok_or(LoginRefusal::NotBegun)?;
    let (person, role) = sign_in.finish(Returned { code: &code, login: &login }).await?;
    tracing::info!(who = person.name(), role = role.as_str(), "signed in to the dashboard");
    let id = state.sessions.open(role, OpenedBy::Person(person));
    let id = id.map_err(|_| LoginRefusal::NoRandomness)?;
    Ok(encrypted_alone(id.cookie(&state.access), &login.callback))
}

impl OidcSignIn {
    /// Where browsers that came by this host are sent back to; nowhere if the provider could not know.
    fn origin(&self, host: &str) -> Option<String> {
        let Some(dashboard) = &self.settings.dashboard else {
            let origin = format!("http://{host}");
            return origin
                .parse()
                .is_ok_and(|url| crate::config::is_private(&url))
                .then_some(origin);
        };
        let authority = dashboard.authority()?.as_str();
        let is_there = authority.eq_ignore_ascii_case(host);
        is_there.then(|| format!("{}://{authority}", dashboard.scheme_str().unwrap_or("https")))
    }

    fn elsewhere(&self) -> String {
        match &self.settings.dashboard {
            Some(url) => format!(
                "The provider sends people back to {url}, and this is not it. Open that address \
                 instead; a proxy before it has to keep the header Host."
            ),
            None => "The provider would send you back over a connection that is not encrypted. \
                     Come by an address of loopback, or have `dashboard` written into \
                     `[admin_oidc]` of the configuration."
                .to_owned(),
        }
    }
}

fn configured(state: &AdminState) -> Result<&Arc<OidcSignIn>, AdminProblem> {
    state.sign_in.as_ref().ok_or_else(AdminProblem::no_such_page)
}

fn sent_to(page: &str) -> Response {
    let headers = [(LOCATION, page), (CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer")];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn login_cookie(login: &PendingLogin, access: &AdminAccess) -> String {
    let (name, seconds) = (login_cookie_name(access), LOGIN_SPAN.as_secs());
    let value = &login.browser;
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Lax; Path={START}; Max-Age={seconds}");
    encrypted_alone(cookie, &login.callback)
}

fn no_login_cookie(access: &AdminAccess) -> String {
    let name = login_cookie_name(access);
    format!("{name}=; HttpOnly; SameSite=Lax; Path={START}; Max-Age=0")
}

fn login_cookie_name(access: &AdminAccess) -> String {
    format!("hapax-login-{}", access.address.port())
}

/// A cookie of a dashboard that is reached over TLS is sent over nothing else.
fn encrypted_alone(cookie: String, callback: &str) -> String {
    if callback.starts_with("https:") { cookie + "; Secure" } else { cookie }
}

fn log(refusal: &LoginRefusal) {
    let refusal = OneLine::of(refusal);
    tracing::warn!(%refusal, "somebody could not sign in to the dashboard");
}

/// The page for somebody who is not let in, with why.
fn told(sign_in: &OidcSignIn, refusal: &LoginRefusal) -> Response {
    log(refusal);
    let claim = &sign_in.settings.claim;
    let (status, why) = match refusal {
        LoginRefusal::NotBegun => (
            StatusCode::BAD_REQUEST,
            "This browser began no sign-in that this could be the end of: it was used already, took \
             longer than ten minutes, or was begun elsewhere. Begin again."
                .to_owned(),
        ),
        LoginRefusal::Denied { error } => (
            StatusCode::FORBIDDEN,
            format!("The provider did not sign you in. It said: {}", shortened(error)),
        ),
        LoginRefusal::NoRole { person } => (
            StatusCode::FORBIDDEN,
            format!(
                "You are {}, and in no group that may look at this gateway or change it. Ask \
                 whoever runs it which group that is; the provider names yours in the claim {claim}.",
                person.name()
            ),
        ),
        LoginRefusal::Nameless { claim } => (
            StatusCode::FORBIDDEN,
            format!(
                "The provider does not say who you are: its token has no claim {claim} that can be \
                 written down, or does not vouch for it. Whoever runs this gateway can ask it for \
                 more scopes, or take another claim as `person`."
            ),
        ),
        LoginRefusal::Token(fault) => (
            StatusCode::FORBIDDEN,
            format!("What the provider said of you is not believed: {fault}."),
        ),
        LoginRefusal::Provider(super::ProviderFault::CodeRefused { error }) => (
            StatusCode::BAD_GATEWAY,
            format!("The provider took its code not back. It said: {}", shortened(error)),
        ),
        LoginRefusal::Provider(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The provider does not answer as it should. Try again later, or sign in by a token; \
             the gateway's log says more."
                .to_owned(),
        ),
        LoginRefusal::NoRandomness => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The operating system gave no random bytes, so no session can be begun.".to_owned(),
        ),
    };
    refusal_page(status, sign_in, &why)
}

/// What a provider said, as far as it is repeated.
fn shortened(said: &str) -> String {
    let visible = said.chars().filter(|char| !char.is_control());
    visible.take(SAID_BYTES_MAX).collect()
}

fn refusal_page(status: StatusCode, sign_in: &OidcSignIn, why: &str) -> Response {
    dashboard::notice_page(
        status,
        &format!("You are not signed in by {}", sign_in.called()),
        why,
        "Back to signing in",
    )
}
