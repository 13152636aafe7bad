//! Sessions of browsers: a cookie instead of a token that would have to be kept in a page.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, header::COOKIE};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::{AdminAccess, AdminRole, oidc::Person};

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
        random_secret().map(Self)
    }

    /// The cookie that gives it to a browser.
    pub(super) fn cookie(&self, access: &AdminAccess) -> String {
        let (name, seconds) = (cookie_name(access), SESSION_SPAN.as_secs());
        format!("{name}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}", self.0)
    }
}

/// 256 random bits, in hexadecimal digits.
pub(super) fn random_secret() -> Result<String, getrandom::Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
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
    cookie_of(headers, &cookie_name(access)).map(SessionId)
}

/// What the cookie of this name holds, if there is one.
pub(super) fn cookie_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name && !value.is_empty()).then(|| value.to_owned())
    });
    pairs.next()
}

/// Who is signed in. Clones share it; nothing of it outlives the process.
#[derive(Debug, Clone, Default)]
pub(in crate::admin) struct SessionRegistry(Arc<Mutex<Vec<OpenSession>>>);

#[derive(Debug)]
struct OpenSession {
    id: SessionId,
    holder: SessionHolder,
    until: Instant,
}

/// Who has a session.
#[derive(Debug, Clone)]
pub(in crate::admin) struct SessionHolder {
    pub(in crate::admin) role: AdminRole,
    pub(in crate::admin) opened_by: OpenedBy,
}

/// What somebody showed to get in.
#[derive(Debug, Clone)]
pub(in crate::admin) enum OpenedBy {
    /// A token, which several people may have.
    Token,
    /// What a provider says of this person.
    Person(Person),
}

impl OpenedBy {
    /// Who it is, if that is known.
    pub(in crate::admin) fn person(&self) -> Option<&Person> {
        match self {
            Self::Token => None,
            Self::Person(person) => Some(person),
        }
    }
}

impl SessionRegistry {
    /// Begins a session.
    pub(super) fn open(
        &self,
        role: AdminRole,
        opened_by: OpenedBy,
    ) -> Result<SessionId, getrandom::Error> {
        let id = SessionId::draw()?;
        self.with(|sessions| {
            if sessions.len() >= SESSIONS_MAX {
                // They stand in order of time, so the first is the oldest.
                sessions.remove(0);
            }
            sessions.push(OpenSession {
                id: id.clone(),
                holder: SessionHolder { role, opened_by },
                until: Instant::now() + SESSION_SPAN,
            });
        });
        Ok(id)
    }

    /// Who has this session; nobody if it is over.
    pub(in crate::admin) fn holder(&self, id: &SessionId) -> Option<SessionHolder> {
        self.with(|sessions| {
            let is = |session: &&OpenSession| session.id.0.as_bytes().ct_eq(id.0.as_bytes()).into();
            sessions.iter().find(is).map(|session| session.holder.clone())
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
