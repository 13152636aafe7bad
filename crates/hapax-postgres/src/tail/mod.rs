//! The outbox by logical replication: its events as they commit, without asking the table for them.
//!
//! The table is the record, and the stream only a quicker way to its newest rows. Whatever becomes of
//! the stream, [`Tail`] answers from the table, as [`Outbox`] does, and begins another stream.
//!
//! - `stream`: the task that follows; `socket` and `authentication`: its connection; `pgoutput`:
//!   what it hears; `prepare`: what the server must have;
//! - `window`: the newest events; `live`: what the task and those who look share;
//! - `look`: answering from the window; `snapshot`: which transactions are visible.
//!
//! # Why an answer from the window is right
//!
//! Let `F` be the window's floor and `S` the place in the server's log up to which the stream has
//! come. *Every event above `F` that committed before `S` is in the window.* At the beginning, `F` is
//! the last position given out after the slot was made: a higher one is given out later, so it
//! commits later, so it comes through the stream. Whatever is let go of, because there is no room or
//! it is not understood, raises `F` above it.
//!
//! A look that begins at or above `F` is answered in three steps. A statement on the same session
//! that reads the table says what a snapshot `T` shows and where the log ends. The stream comes to
//! that end (commits that are not on disk yet need not be waited for, unless the look
//! [decides](hapax_core::outbox::Look::decides)). The window shows what is in `T`: a commit comes
//! through the stream a moment before it is visible, or long before where a standby is waited for,
//! and until then it is not shown. So the answer is what the table would have shown in `T`; without
//! what is not on disk, or where the stream is late, it is what the table would have shown earlier.
//! Who sees an event sees all earlier ones of its key either way, because a key's writers commit one
//! after the other, in the log as in the table. That older answers will do where nothing is decided
//! is shown by the model in `hapax-verify`, which also refutes deciding by one.
//!
//! Gaps that begin at or below `F` are looked for in the table, after the window was asked, so that
//! no event of the window precedes an earlier one of its key. A destination for which something is
//! parked is answered by the table alone.
//!
//! # Why the slot is temporary
//!
//! Nothing has to be kept for us: after a new beginning the table has what was missed. So everything
//! is confirmed once it was read, the slot goes with the connection, and no slot is ever left behind
//! to fill a disk. Its price: a new stream begins when every transaction has ended that was running,
//! and until then the table is read.

mod authentication;
mod error;
mod live_window;
mod look;
mod pgoutput;
mod prepare;
mod snapshot;
mod socket;
mod status;
mod stream;
mod stream_end;
mod window;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hapax_core::{
    StoreError, forward_outbox,
    outbox::{Look, OutboxAdmin, OutboxLog, Seen},
};
use tokio::task::AbortHandle;

pub use self::{
    error::TailError,
    prepare::prepare,
    status::{TailMode, TailReason, TailStatus},
};
use self::{live_window::Live, stream::Follower, window::WindowRoom};
use crate::{connect::Address, connection::ConnectionSlot, outbox::Outbox};

/// How the log is followed.
///
/// ```
/// use hapax_postgres::tail::TailOptions;
///
/// // The publication was made by the schema's owner.
/// let options = TailOptions { prepare: false, ..TailOptions::default() };
/// assert_eq!(options.window_events, 50_000);
/// ```
#[derive(Debug, Clone)]
pub struct TailOptions {
    /// Whether what is to be streamed is declared to the server if it is not
    /// ([`prepare`] does it, too); that takes the owner of schema `hapax`.
    pub prepare: bool,
    /// The most events kept in memory; older ones are read from the table.
    pub window_events: usize,
    /// The most bytes of events kept in memory.
    pub window_bytes: usize,
    /// How long a look waits for the stream to come to the present before it makes do with what
    /// there is.
    pub patience: Duration,
    /// How often a sign of life goes through the server's log; after three missed ones the stream
    /// is given up.
    pub heartbeat_every: Duration,
    /// How many bytes the stream may be behind, or the server keep for it, before there is a
    /// warning.
    pub alarm_bytes: u64,
}

impl Default for TailOptions {
    fn default() -> Self {
        Self {
            prepare: true,
            window_events: 50_000,
            window_bytes: 32 << 20,
            patience: Duration::from_millis(20),
            heartbeat_every: Duration::from_secs(10),
            alarm_bytes: 512 << 20,
        }
    }
}

/// An [`Outbox`] whose looks are answered from the server's log, and from the table whenever that
/// cannot be. Clones share the stream, which ends with the last of them.
///
/// ```no_run
/// use hapax_postgres::{Outbox, OutboxOptions, tail::{Tail, TailOptions}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address: hapax_postgres::Address = "postgres://app@localhost/shop".parse()?;
/// let outbox = Outbox::connect(&address, OutboxOptions::default()).await?;
/// let tail = Tail::follow(outbox, &address, TailOptions::default()).await?;
/// println!("{:?}", tail.status());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tail {
    outbox: Outbox,
    options: Arc<TailOptions>,
    live: Arc<Live>,
    _following: Arc<Following>,
}

/// Ends the task that follows.
struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Tail {
    /// Follows the log of the database this outbox is in.
    ///
    /// Refused where the server cannot be followed, or would keep its log without limit. When it
    /// returns, the stream has not begun: until it has, the table is read.
    pub async fn follow(
        outbox: Outbox,
        address: impl Into<Address>,
        options: TailOptions,
    ) -> Result<Self, TailError> {
        let address = address.into();
        let link = ConnectionSlot::new(&address, prepare::ANSWER_TIMEOUT);
        let (wire, _) = link.connect().await?;
        prepare::check(&wire, options.prepare).await?;
        let room = WindowRoom { events: options.window_events, bytes: options.window_bytes };
        let live = Arc::new(Live::new(outbox.bell().clone(), room));
        let options =
            TailOptions { heartbeat_every: options.heartbeat_every.max(HEARTBEAT_MIN), ..options };
        let follower = Follower {
            address,
            link,
            options: options.clone(),
            live: Arc::clone(&live),
            near: AtomicU64::new(0),
        };
        let following = tokio::spawn(follower.run()).abort_handle();
        let _following = Arc::new(Following(following));
        Ok(Self { outbox, options: Arc::new(options), live, _following })
    }

    /// How the log is read at present.
    pub fn status(&self) -> TailStatus {
        self.live.status()
    }

    /// Ends when the log is read in this way.
    pub async fn until(&self, wanted: impl Fn(&TailMode) -> bool) {
        // The sender lives as long as this does.
        let _ = self.live.mode().wait_for(|(mode, _)| wanted(mode)).await;
    }
}

const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// Asks the table.
macro_rules! table {
    ($self:ident, $method:ident($($argument:ident),*)) => {
        $self.outbox.$method($($argument),*).await
    };
}

impl OutboxLog for Tail {
    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        if let Some(seen) = self.look_at_stream(destination, &look).await? {
            return Ok(Some(seen));
        }
        self.live.table_looks.fetch_add(1, Ordering::Relaxed);
        self.outbox.look(destination, look).await
    }

    forward_outbox! {
        table: register set_paused lease release leave writers acknowledge park retire
    }

    fn ring(&self) {
        self.outbox.ring();
    }

    async fn rung(&self) {
        self.outbox.rung().await;
    }
}

impl OutboxAdmin for Tail {
    forward_outbox! { table: remove destinations parked replay forget lag }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("status", &self.status()).finish_non_exhaustive()
    }
}
