//! Who may use the admin side, and as what.
//!
//! - `token`: programs show a token with every request;
//! - `session`: a browser shows it once, and a cookie from then on;
//! - `browser`: what has to be true of a request that a browser made, since other pages can make it
//!   send one too;
//! - `login`: signing in by a token, and out;
//! - `oidc`: signing in by an OpenID provider.

mod browser;
mod login;
mod oidc;
mod session;
mod token;

use std::net::{Ipv4Addr, SocketAddr};

use axum::{
    extract::{Request, State},
    http::header::AUTHORIZATION,
    middleware::Next,
    response::Response,
};

pub use self::token::AdminSecret;
pub(super) use self::{
    browser::known_host,
    login::routes,
    oidc::OidcSignIn,
    session::{OpenedBy, SessionId, SessionRegistry},
};
use self::{oidc::Person, token::bearer};
use super::{AdminState, problem::AdminProblem};
use crate::config::AdminOidc;

/// What lets people and programs in.
#[derive(Debug, Clone)]
pub struct AdminAccess {
    /// The token of those who may look and change.
    pub operate: Option<AdminSecret>,
    /// The token of those who may look.
    pub read: Option<AdminSecret>,
    /// Names by which browsers may come, beside loopback's and the listener's address.
    pub hosts: Vec<String>,
    /// Where the listener is.
    pub address: SocketAddr,
    /// Who signs people in to the dashboard.
    pub oidc: Option<AdminOidc>,
}

impl Default for AdminAccess {
    /// Nobody is let in.
    fn default() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { operate: None, read: None, hosts: Vec::new(), address, oidc: None }
    }
}

impl AdminAccess {
    /// Whether anybody can be let in by a token.
    fn has_token(&self) -> bool {
        self.operate.is_some() || self.read.is_some()
    }

    /// Browsers may come by the name of the dashboard, which need not be among `hosts`.
    pub(super) fn with_dashboard_host(mut self) -> Self {
        let dashboard = self.oidc.as_ref().and_then(|oidc| oidc.dashboard.as_ref());
        let host = dashboard.and_then(|url| url.authority());
        self.hosts.extend(host.map(|host| host.as_str().to_ascii_lowercase()));
        self
    }

    /// What whoever shows this token may do.
    fn role_of(&self, offered: &[u8]) -> Option<AdminRole> {
        let is = |token: &Option<AdminSecret>| token.as_ref().is_some_and(|it| it.is(offered));
        // Both are compared, so that the time says nothing about which it is not.
        match (is(&self.operate), is(&self.read)) {
            (true, _) => Some(AdminRole::Operate),
            (false, true) => Some(AdminRole::Read),
            (false, false) => None,
        }
    }
}

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdminRole {
    /// Look at everything.
    Read,
    /// Change operations and events, too.
    Operate,
}

impl AdminRole {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) role: AdminRole,
    /// The session they came with, if they did not show a token.
    pub(super) session: Option<SessionId>,
    opened_by: OpenedBy,
}

impl Visitor {
    /// Who wants a change: what `written` says, unless it is known who it is.
    pub(super) fn who<'a>(&'a self, written: &'a str) -> Result<&'a str, AdminProblem> {
        match self.opened_by.person().map(Person::name) {
            None => Ok(written),
            Some(person) if written.is_empty() || written == person => Ok(person),
            Some(person) => Err(AdminProblem::invalid(format!(
                "who: you are signed in as {person}, and nobody else; leave it out"
            ))),
        }
    }
}

/// Lets a request pass whose sender may make it.
pub(super) async fn required(
    State(state): State<AdminState>,
    mut request: Request,
    next: Next,
) -> Result<Response, AdminProblem> {
    let visitor = identify(&state, &request)?;
    if !request.method().is_safe() && visitor.role == AdminRole::Read {
        return Err(AdminProblem::forbidden(
            "read-only",
            "you may look and change nothing; changes need the token of `admin_token`, or a group \
             of `operate`",
        ));
    }
    request.extensions_mut().insert(visitor);
    Ok(next.run(request).await)
}

fn identify(state: &AdminState, request: &Request) -> Result<Visitor, AdminProblem> {
    let access = &*state.access;
    if !access.has_token() && access.oidc.is_none() {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "no token is configured, so nobody may use this API; set `admin_token` or \
             `admin_token_file` in the configuration, or HAPAX_ADMIN_TOKEN, and restart",
        ));
    }
    let header = request.headers().get(AUTHORIZATION);
    if let Some(offered) = header.and_then(|value| bearer(value.as_bytes())) {
        let role = access.role_of(offered).ok_or_else(AdminProblem::wrong_token)?;
        return Ok(Visitor { role, session: None, opened_by: OpenedBy::Token });
    }
    let Some(id) = session::offered(request.headers(), access).filter(|_| header.is_none()) else {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "send the gateway's admin token as `Authorization: Bearer TOKEN`",
        ));
    };
    browser::checked(access, request)?;
    let holder = state.sessions.holder(&id).ok_or_else(AdminProblem::session_over)?;
    Ok(Visitor { role: holder.role, session: Some(id), opened_by: holder.opened_by })
}
