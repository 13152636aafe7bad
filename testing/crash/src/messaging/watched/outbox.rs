use std::io::{self, Write};

use hapax_core::{
    StoreError, forward_outbox,
    outbox::{OutboxLog, Park},
};

use crate::place::Doom;

/// An outbox whose relay may die right before and right after each call.
#[derive(Debug)]
pub struct WatchedOutbox<O> {
    outbox: O,
    doom: Doom,
}

impl<O: OutboxLog> WatchedOutbox<O> {
    /// The outbox, with that end awaiting its relay.
    pub fn new(outbox: O, doom: Doom) -> Self {
        Self { outbox, doom }
    }
}

/// Makes a call of the outbox, with its two places to die at.
macro_rules! watched {
    ($self:ident, $method:ident($($argument:ident),*)) => {{
        let name = concat!("outbox.", stringify!($method));
        $self.doom.around(name, $self.outbox.$method($($argument),*)).await
    }};
}

impl<O: OutboxLog> OutboxLog for WatchedOutbox<O> {
    forward_outbox! { watched: register lease release leave look writers acknowledge retire }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        let told = format!("{park:?}");
        let parked = watched!(self, park(park));
        // For whoever wants to know afterwards what a victim did: it goes to its log.
        let _ = writeln!(io::stderr(), "{told}: {parked:?}");
        parked
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        self.outbox.set_paused(name, paused).await
    }

    fn ring(&self) {
        self.outbox.ring();
    }

    async fn rung(&self) {
        self.outbox.rung().await;
    }
}
