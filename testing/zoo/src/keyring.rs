//! The keys that a server remembers.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::{Duration, Instant};

use crate::response::PlainResponse;

/// Keys by their names.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    keys: Mutex<HashMap<String, KnownKey>>,
}

/// What is remembered of one key.
#[derive(Debug, Clone)]
pub(crate) struct KnownKey {
    /// What must be the same in whatever comes with it.
    pub(crate) fingerprint: String,
    /// Which connection brought it first.
    pub(crate) connection: u64,
    /// The answer, once there is one.
    pub(crate) response: Option<PlainResponse>,
    claimed: Instant,
}

/// What there is under a key.
#[derive(Debug, Clone)]
pub(crate) enum KeyFound {
    /// Nothing.
    Free,
    /// One that has no answer yet.
    Running,
    /// One with this answer.
    Finished(PlainResponse),
    /// One that came with another request.
    Reused,
}

impl KnownKey {
    /// A key that is running from now on.
    pub(crate) fn claimed(fingerprint: String, connection: u64) -> Self {
        Self { fingerprint, connection, response: None, claimed: Instant::now() }
    }

    /// A key with its answer.
    pub(crate) fn finished(fingerprint: String, response: PlainResponse) -> Self {
        Self { response: Some(response), ..Self::claimed(fingerprint, 0) }
    }

    /// Since it was claimed.
    pub(crate) fn age(&self) -> Duration {
        self.claimed.elapsed()
    }

    fn found_by(&self, fingerprint: &str) -> KeyFound {
        if self.fingerprint != fingerprint {
            return KeyFound::Reused;
        }
        self.response.clone().map_or(KeyFound::Running, KeyFound::Finished)
    }
}

impl Keyring {
    /// Takes a key that is free, in one step.
    pub(crate) fn claim(&self, name: &str, key: KnownKey) -> KeyFound {
        let mut keys = self.all();
        match keys.get(name) {
            Some(known) => known.found_by(&key.fingerprint),
            None => {
                keys.insert(name.to_owned(), key);
                KeyFound::Free
            }
        }
    }

    /// Only looks: whoever acts on it may be too late.
    pub(crate) fn look(&self, name: &str, fingerprint: &str) -> KeyFound {
        self.all().get(name).map_or(KeyFound::Free, |known| known.found_by(fingerprint))
    }

    /// Gives a key its answer, if it is still there.
    pub(crate) fn finish(&self, name: &str, response: PlainResponse) {
        if let Some(known) = self.all().get_mut(name) {
            known.response = Some(response);
        }
    }

    /// Writes a key over whatever is there.
    pub(crate) fn put(&self, name: &str, key: KnownKey) {
        self.all().insert(name.to_owned(), key);
    }

    /// Removes a key.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    /// All of them, while nobody else looks.
    pub(crate) fn all(&self) -> MutexGuard<'_, HashMap<String, KnownKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
