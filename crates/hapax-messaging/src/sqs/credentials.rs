//! Who signs.

use std::{env, fmt};

/// Whom Amazon takes us for.
#[derive(Clone)]
pub struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
}

impl Credentials {
    /// An access key, its secret, and the token that belongs to them if they are temporary.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<String>,
    ) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token,
        }
    }

    /// What `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` say; the name of
    /// the one that is missing otherwise.
    pub fn from_environment() -> Result<Self, &'static str> {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let required = |name| text(name).ok_or(name);
        Ok(Self {
            access_key_id: required("AWS_ACCESS_KEY_ID")?,
            secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
            session_token: text("AWS_SESSION_TOKEN"),
        })
    }

    pub(super) fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    pub(super) fn secret_access_key(&self) -> &str {
        &self.secret_access_key
    }

    pub(super) fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("id", &self.access_key_id).finish_non_exhaustive()
    }
}
