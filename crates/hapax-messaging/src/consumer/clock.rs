//! A consumer's watch over the clock of its database, by which what is past its retention is forgotten.

use hapax_core::{StoreError, inbox::Inbox, limits::CLOCK_STAYS};
use hapax_engine::ClockWatch;
use tokio::sync::Mutex;

/// What one consumer has seen of the clock.
#[derive(Debug, Default)]
pub(super) struct InboxClock(Mutex<ClockWatch>);

impl InboxClock {
    /// Looks at the clock, and has the database keep how far it is trusted.
    pub(super) async fn look(&self, inbox: &impl Inbox) -> Result<(), StoreError> {
        let (watch, news) = self.0.lock().await.look(CLOCK_STAYS, inbox.clock()).await?;
        if !watch.is_trusted() {
            tracing::warn!(
                "the database's clock is ahead of where it was: nothing is forgotten until it has stayed"
            );
        }
        match news {
            Some(mark) => inbox.keep_clock(mark).await,
            None => Ok(()),
        }
    }
}
