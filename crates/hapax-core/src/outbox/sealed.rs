//! Events that are encrypted in the log: how they are told from others, and who opens them.

use std::{fmt::Debug, pin::Pin};

use super::stored_event::Stored;
use crate::store::StoreError;

/// The content type of an event that is encrypted in the log, and of no other.
pub const SEALED_EVENT_TYPE: &str = "application/vnd.hapax.sealed";

/// Opens encrypted events, for whoever sends or shows them.
pub trait EventOpener: Debug + Send + Sync + 'static {
    /// The event as it was before it was encrypted; one that is clear, as it is.
    fn open(&self, event: Stored) -> OpeningEvent<'_>;
}

/// An event that is being opened.
pub type OpeningEvent<'a> =
    Pin<Box<dyn Future<Output = Result<Stored, UnopenedEvent>> + Send + 'a>>;

/// Why an encrypted event was not opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UnopenedEvent {
    /// Nobody can ever open it, and this is why.
    #[error("{0}")]
    Never(String),
    /// Not now, or not with the keys at hand: nothing is wrong with the event.
    #[error("it cannot be decrypted now: {0}")]
    NotNow(#[source] StoreError),
}
