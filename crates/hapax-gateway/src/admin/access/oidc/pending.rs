//! Sign-ins that were begun and have not come back.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::super::session::random_secret;

/// How long somebody may take at the provider.
pub(super) const LOGIN_SPAN: Duration = Duration::from_secs(10 * 60);
/// Most sign-ins at one time; one more ends the oldest.
const LOGINS_MAX: usize = 256;

/// A sign-in that was begun: what the provider has to say, and what the browser.
#[derive(Clone)]
pub(super) struct PendingLogin {
    /// What the provider hands back, through the browser.
    pub(super) state: String,
    /// What the browser alone holds, in a cookie.
    pub(super) browser: String,
    /// What the token has to hold.
    pub(super) nonce: String,
    /// What only whoever began can show for the code (RFC 7636).
    pub(super) verifier: String,
    /// Where the provider sends the browser.
    pub(super) callback: String,
    until: Instant,
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLogin").field("callback", &self.callback).finish_non_exhaustive()
    }
}

impl PendingLogin {
    /// What the provider is told of the verifier.
    pub(super) fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

/// All of them. Each is taken once, in time, by the browser it was begun in.
#[derive(Debug, Default)]
pub(super) struct LoginRegistry(Mutex<Vec<PendingLogin>>);

impl LoginRegistry {
    pub(super) fn begin(&self, callback: String) -> Result<PendingLogin, getrandom::Error> {
        let login = PendingLogin {
            state: random_secret()?,
            browser: random_secret()?,
            nonce: random_secret()?,
            verifier: random_secret()?,
            callback,
            until: Instant::now() + LOGIN_SPAN,
        };
        self.with(|logins| {
            if logins.len() >= LOGINS_MAX {
                // They stand in order of time, so the first is the oldest.
                logins.remove(0);
            }
            logins.push(login.clone());
        });
        Ok(login)
    }

    /// The sign-in with this state, which is over by that; nothing in another browser.
    pub(super) fn take(&self, state: &str, browser: &str) -> Option<PendingLogin> {
        let is = |ours: &str, theirs: &str| bool::from(ours.as_bytes().ct_eq(theirs.as_bytes()));
        self.with(|logins| {
            let at = logins.iter().position(|login| is(&login.state, state))?;
            Some(logins.remove(at)).filter(|login| is(&login.browser, browser))
        })
    }

    /// Does something with those that are not over.
    fn with<T>(&self, work: impl FnOnce(&mut Vec<PendingLogin>) -> T) -> T {
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        logins.retain(|login| now < login.until);
        work(&mut logins)
    }
}
