//! Who may use the admin side, and as what.
//!
//! - `token`: programs show a token with every request;
//! - `session`: a browser shows it once, and a cookie from then on;
//! - `browser`: what has to be true of a request that a browser made, since other pages can make it
//!   send one too;
//! - `login`: signing in and out.

mod browser;
mod login;
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
use self::token::bearer;
pub(super) use self::{
    browser::known_host,
    login::routes,
    session::{SessionId, SessionRegistry},
};
use super::{AdminState, problem::AdminProblem};

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
}

impl Default for AdminAccess {
    /// Nobody is let in.
    fn default() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { operate: None, read: None, hosts: Vec::new(), address }
    }
}

impl AdminAccess {
    /// Whether anybody can be let in.
    fn is_configured(&self) -> bool {
        self.operate.is_some() || self.read.is_some()
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
            "this token may look and change nothing; changes need the one of `admin_token`",
        ));
    }
    request.extensions_mut().insert(visitor);
    Ok(next.run(request).await)
}

fn identify(state: &AdminState, request: &Request) -> Result<Visitor, AdminProblem> {
    let access = &*state.access;
    if !access.is_configured() {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "no token is configured, so nobody may use this API; set `admin_token` or \
             `admin_token_file` in the configuration, or HAPAX_ADMIN_TOKEN, and restart",
        ));
    }
    let header = request.headers().get(AUTHORIZATION);
    if let Some(offered) = header.and_then(|value| bearer(value.as_bytes())) {
        let role = access.role_of(offered).ok_or_else(AdminProblem::wrong_token)?;
        return Ok(Visitor { role, session: None });
    }
    let Some(id) = session::offered(request.headers(), access).filter(|_| header.is_none()) else {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "send the gateway's admin token as `Authorization: Bearer TOKEN`",
        ));
    };
    browser::checked(access, request)?;
    let role = state.sessions.role_of(&id).ok_or_else(AdminProblem::session_over)?;
    Ok(Visitor { role, session: Some(id) })
}
