//! Who may use the operations API.

use std::fmt;

use axum::{
    extract::{Request, State},
    http::header::AUTHORIZATION,
    middleware::Next,
    response::Response,
};
use subtle::ConstantTimeEq;

use super::{AdminState, problem::AdminProblem};

/// A token that is never shown.
#[derive(Clone)]
pub struct AdminSecret(String);

impl AdminSecret {
    /// Keeps the token; `None` if it is blank, which would let everybody in.
    pub fn new(token: impl Into<String>) -> Option<Self> {
        let token = token.into();
        (!token.trim().is_empty()).then_some(Self(token))
    }

    /// Whether this is the token, in a time that says nothing about how much of it is right.
    fn is(&self, offered: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(offered).into()
    }
}

impl fmt::Debug for AdminSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminSecret(..)")
    }
}

/// Lets a request pass that shows the token.
pub(super) async fn required(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Result<Response, AdminProblem> {
    let Some(token) = &state.token else {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "no token is configured, so nobody may use this API; set `admin_token` or \
             `admin_token_file` in the configuration, or HAPAX_ADMIN_TOKEN, and restart",
        ));
    };
    let Some(offered) =
        request.headers().get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()))
    else {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\"",
            "send the gateway's admin token as `Authorization: Bearer TOKEN`",
        ));
    };
    if !token.is(offered) {
        return Err(AdminProblem::unauthorized(
            "Bearer realm=\"hapax\", error=\"invalid_token\"",
            "this is not the gateway's admin token",
        ));
    }
    Ok(next.run(request).await)
}

/// The token of a header whose scheme is `Bearer`, however that is capitalised.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}
