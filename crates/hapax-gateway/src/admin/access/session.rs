//! Sessions of browsers: a cookie instead of a token that would have to be kept in a page.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, header::COOKIE};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::{AdminAccess, AdminRole};

/// How long a session lasts.
pub(super) const SESSION_SPAN: Duration = Duration::from_secs(12 * 60 * 60);
/// Most sessions at one time; whoever signs in beyond that ends the oldest.
const SESSIONS_MAX: usize = 64;

/// What a cookie holds: 256 random bits, in hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::admin) struct SessionId(String);

impl std::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionId(..)")
    }
}

impl SessionId {
    fn draw() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The cookie that gives it to a browser.
    pub(super) fn cookie(&self, access: &AdminAccess) -> String {
        let (name, seconds) = (cookie_name(access), SESSION_SPAN.as_secs());
        format!("{name}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}", self.0)
    }
}

/// The cookie that takes it back.
pub(super) fn no_cookie(access: &AdminAccess) -> String {
    let name = cookie_name(access);
    format!("{name}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
}

/// Cookies do not tell ports apart: gateways on one machine would sign each other's people out.
fn cookie_name(access: &AdminAccess) -> String {
    format!("hapax-session-{}", access.address.port())
}

/// The session that a request names.
pub(super) fn offered(headers: &HeaderMap, access: &AdminAccess) -> Option<SessionId> {
    let name = cookie_name(access);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name && !value.is_empty()).then(|| SessionId(value.to_owned()))
    });
    pairs.next()
}

/// Who is signed in. Clones share it; nothing of it outlives the process.
#[derive(Debug, Clone, Default)]
pub(in crate::admin) struct SessionRegistry(Arc<Mutex<Vec<OpenSession>>>);

#[derive(Debug)]
struct OpenSession {
    id: SessionId,
    role: AdminRole,
    until: Instant,
}

impl SessionRegistry {
    /// Begins a session.
    pub(super) fn open(&self, role: AdminRole) -> Result<SessionId, getrandom::Error> {
        let id = SessionId::draw()?;
        self.with(|sessions| {
            if sessions.len() >= SESSIONS_MAX {
                // They stand in order of time, so the first is the oldest.
                sessions.remove(0);
            }
            sessions.push(OpenSession {
                id: id.clone(),
                role,
                until: Instant::now() + SESSION_SPAN,
            });
        });
        Ok(id)
    }

    /// What whoever has this session may do; nothing if it is over.
    pub(in crate::admin) fn role_of(&self, id: &SessionId) -> Option<AdminRole> {
        self.with(|sessions| {
            let is = |session: &&OpenSession| session.id.0.as_bytes().ct_eq(id.0.as_bytes()).into();
            sessions.iter().find(is).map(|session| session.role)
        })
    }

    /// Ends it, if it is not over.
    pub(super) fn close(&self, id: &SessionId) {
        self.with(|sessions| sessions.retain(|session| session.id != *id));
    }

    /// Does something with those that are not over.
    fn with<T>(&self, work: impl FnOnce(&mut Vec<OpenSession>) -> T) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        sessions.retain(|session| now < session.until);
        work(&mut sessions)
    }
}
