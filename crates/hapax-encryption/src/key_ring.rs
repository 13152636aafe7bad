//! The data keys of one tenant, unwrapped.

use std::sync::Arc;

use hapax_core::{StoreError, Timestamp, store::DataKeyId};
use tokio::time::Instant;

use crate::sealing::SealingKey;

/// What is known of a tenant's data keys, as of an instant.
#[derive(Debug)]
pub(crate) struct KeyRing {
    /// In order of their version.
    pub(crate) keys: Vec<RingKey>,
    /// The newest that can be used, unless it is too old.
    pub(crate) seals: Option<Arc<SealingKey>>,
    pub(crate) read_at: Instant,
}

/// One data key of a tenant.
#[derive(Debug)]
pub(crate) struct RingKey {
    pub(crate) version: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) state: RingKeyState,
}

#[derive(Debug, Clone)]
pub(crate) enum RingKeyState {
    /// It seals and opens.
    Usable(Arc<SealingKey>),
    /// It was forgotten on purpose.
    Erased,
    /// It is there, and no master key of this process unwraps it.
    Locked(StoreError),
}

impl KeyRing {
    pub(crate) fn find(&self, version: u32) -> Option<&RingKey> {
        self.keys.iter().find(|key| key.version == version)
    }

    /// The same key as this stored one, if it is here and was unwrapped.
    pub(crate) fn unwrapped(&self, id: &DataKeyId, created_at: Timestamp) -> Option<&RingKey> {
        let same = self.find(id.version).filter(|key| key.created_at == created_at)?;
        matches!(same.state, RingKeyState::Usable(_)).then_some(same)
    }

    /// Why the newest key cannot be used, if it cannot: a new one would hide that.
    pub(crate) fn locked(&self) -> Option<&StoreError> {
        match &self.keys.last()?.state {
            RingKeyState::Locked(error) => Some(error),
            RingKeyState::Usable(_) | RingKeyState::Erased => None,
        }
    }

    /// The version after all there ever were.
    pub(crate) fn next_version(&self) -> u32 {
        self.keys.last().map_or(1, |key| key.version.saturating_add(1))
    }
}
