//! The outbox around an outbox.

use std::{fmt, sync::Arc};

use hapax_core::{
    StoreError, forward_outbox,
    outbox::{EventOpener, OutboxAdmin, OutboxLog, Parked, ParkedPage, Selection},
};

/// Any outbox, whose parked events are shown in the clear, as far as they can be opened: for operators.
///
/// What a relay reads of it stays encrypted until it is sent: a relay opens by itself
/// (`Relay::opening`), because it has to know why something cannot be opened.
#[derive(Clone)]
pub struct OpenedOutbox<O> {
    inner: O,
    opener: Arc<dyn EventOpener>,
}

impl<O> OpenedOutbox<O> {
    /// Around this outbox.
    pub fn new(inner: O, opener: Arc<dyn EventOpener>) -> Self {
        Self { inner, opener }
    }
}

macro_rules! forwarded {
    ($self:ident, $method:ident($($argument:ident),*)) => {
        $self.inner.$method($($argument),*).await
    };
}

impl<O: OutboxLog> OutboxLog for OpenedOutbox<O> {
    forward_outbox! {
        forwarded: register set_paused lease release leave look writers acknowledge park retire
    }

    fn ring(&self) {
        self.inner.ring();
    }

    async fn rung(&self) {
        self.inner.rung().await;
    }
}

impl<O: OutboxAdmin> OutboxAdmin for OpenedOutbox<O> {
    forward_outbox! { forwarded: remove destinations replay forget lag }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        let mut parked = self.inner.parked(destination, selection, page).await?;
        for parked in &mut parked {
            if parked.event.is_sealed()
                && let Ok(opened) = self.opener.open(parked.event.clone()).await
            {
                parked.event = opened;
            }
        }
        Ok(parked)
    }
}

impl<O: fmt::Debug> fmt::Debug for OpenedOutbox<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedOutbox").field("inner", &self.inner).finish_non_exhaustive()
    }
}
