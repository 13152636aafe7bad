//! The outbox as a log of segments, for relays.
//!
//! - `look`: reading, by position, in one snapshot; `row`: an event as columns;
//! - `lanes`: leases and progress; `parked`: what was put aside;
//! - `lag`: how far behind; `announce`: hints between processes.
//!
//! What writers do is in `migrations/baseline/05_outbox.sql`: `hapax.emit`.

mod announce;
mod lag;
mod lanes;
mod look;
mod parked;
mod row;

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::{
    Fence, Owner, StoreError,
    outbox::{
        Bell, Destination, InvalidDestination, Lag, Lane, LaneProgress, Leases, Look, OutboxAdmin,
        OutboxLog, Park, Parked, ParkedPage, Registered, RelayLease, Retired, Seen, Selection,
        Start, Topics, Writer,
    },
};

use self::announce::Announcer;
#[cfg(feature = "tail")]
pub(crate) use self::row::FORMAT;
use crate::{
    connect::Address,
    connection::{ConnectionSlot, SharedConnection},
    error::{OpenError, StatementFailure, reading},
    migrate,
    row::column,
    store::detached,
};

const REGISTER: &str = include_str!("../sql/outbox_register.sql");
const WRITERS: &str = include_str!("../sql/outbox_writers.sql");
const FULL: &str = include_str!("../sql/outbox_full.sql");
const RETIRE: &str = "SELECT hapax.outbox_retire($1)";
const REMOVE: &str = "DELETE FROM hapax.outbox_destinations WHERE name = $1 RETURNING 1";
const LIST: &str = "SELECT name, topics, paused FROM hapax.outbox_destinations ORDER BY name";
const PAUSE: &str = "UPDATE hapax.outbox_destinations SET paused = $2 WHERE name = $1 RETURNING 1";

/// How an outbox is opened.
///
/// ```
/// use hapax_core::outbox::Bell;
/// use hapax_postgres::OutboxOptions;
///
/// // Whoever emits in this process rings it, and relays send at once.
/// let bell = Bell::new();
/// let options = OutboxOptions { bell: bell.clone(), ..OutboxOptions::default() };
/// assert!(options.migrate);
/// ```
#[derive(Debug, Clone)]
pub struct OutboxOptions {
    /// Whether the schema is created and brought up to date on opening.
    pub migrate: bool,
    /// How long the server may take to answer before a connection is given up.
    pub answer_timeout: Duration,
    /// Rung by whoever emits in this process, after the commit.
    pub bell: Bell,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self { migrate: true, answer_timeout: Duration::from_secs(20), bell: Bell::new() }
    }
}

/// Events in PostgreSQL, for a relay to read. Clones share the connections.
///
/// ```no_run
/// use hapax_core::outbox::OutboxAdmin;
/// use hapax_postgres::{Outbox, OutboxOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address: hapax_postgres::Address = "postgres://app@localhost/shop".parse()?;
/// let outbox = Outbox::connect(&address, OutboxOptions::default()).await?;
/// for destination in outbox.destinations().await? {
///     println!("{destination:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    /// Reads the log, and nothing else: a new connection is a new session for readers.
    reader: ConnectionSlot,
    writer: ConnectionSlot,
    announcer: Announcer,
}

impl Outbox {
    /// Opens the outbox in this database. A pooler in between must pool by session.
    pub async fn connect(
        address: impl Into<Address>,
        options: OutboxOptions,
    ) -> Result<Self, OpenError> {
        let address = address.into();
        migrate::open(&address, options.migrate).await?;
        let link = || ConnectionSlot::new(&address, options.answer_timeout);
        let announcer = Announcer::new(link(), options.bell);
        Ok(Self { shared: Arc::new(Shared { reader: link(), writer: link(), announcer }) })
    }

    /// The session that looks.
    #[cfg(feature = "tail")]
    pub(crate) async fn reader(&self) -> Result<Arc<SharedConnection>, StatementFailure> {
        self.shared.reader.wire().await
    }

    /// What wakes a relay of this process.
    #[cfg(feature = "tail")]
    pub(crate) fn bell(&self) -> &Bell {
        self.shared.announcer.bell()
    }

    async fn wire(&self) -> Result<Arc<SharedConnection>, StatementFailure> {
        self.shared.writer.wire().await
    }

    async fn retire_segments(&self, limit: usize) -> Result<Retired, StatementFailure> {
        let wire = self.wire().await?;
        let (most, mut retired) = (u64::try_from(limit).unwrap_or(u64::MAX), Retired::default());
        for row in wire.query(FULL, &[]).await? {
            if retired.events >= most {
                break;
            }
            match wire.query(RETIRE, &[&column::<i16>(&row, 0)?]).await {
                Ok(rows) => {
                    let events: i64 = column(first(&rows)?, 0)?;
                    retired.events += u64::try_from(events).unwrap_or(0);
                }
                // A reader is in the way: the next call comes by again.
                Err(failure) if failure.is_passing() => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(retired)
    }
}

impl OutboxLog for Outbox {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        let (name, topics) = (destination.name(), destination.topics().patterns());
        self.wire().await?.query(REGISTER, &[&name, &topics, &(start == Start::Now)]).await?;
        Ok(())
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        Ok(!self.wire().await?.query(PAUSE, &[&name, &paused]).await?.is_empty())
    }

    async fn lease(&self, lease: RelayLease) -> Result<Option<Leases>, StoreError> {
        lanes::lease(&*self.wire().await?, &lease).await
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        Ok(lanes::release(&*self.wire().await?, destination, owner, &lanes).await?)
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        Ok(lanes::leave(&*self.wire().await?, destination, owner).await?)
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        let wire = self.shared.reader.wire().await?;
        look::look(&wire, destination, &look).await
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        let rows = async { self.wire().await?.query(WRITERS, &[]).await }.await.map_err(reading)?;
        let read = |row| {
            let (segment, name, prepared) = (column(row, 0)?, column(row, 1)?, column(row, 2)?);
            Ok(Writer { segment, name, prepared })
        };
        rows.iter().map(read).collect()
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: LaneProgress,
    ) -> Result<Vec<Lane>, StoreError> {
        lanes::acknowledge(&*self.wire().await?, destination, &progress).await
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        Ok(parked::park(&*self.wire().await?, &park).await?)
    }

    /// A segment is emptied under a lock: once that is sent, it is seen through.
    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        let outbox = self.clone();
        let retired = detached(async move { outbox.retire_segments(limit).await }).await;
        Ok(retired.flatten()?)
    }

    fn ring(&self) {
        self.shared.announcer.ring();
    }

    async fn rung(&self) {
        self.shared.announcer.rung().await;
    }
}

impl OutboxAdmin for Outbox {
    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        Ok(!self.wire().await?.query(REMOVE, &[&name]).await?.is_empty())
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        let rows = async { self.wire().await?.query(LIST, &[]).await }.await.map_err(reading)?;
        let read = |row| {
            let topics: Vec<String> = column(row, 1)?;
            let (name, paused) = (column::<String>(row, 0)?, column(row, 2)?);
            let damaged = |error: InvalidDestination| StoreError::damaged(error);
            let destination = Destination::new(name, Topics::parse(topics).map_err(damaged)?);
            Ok(Registered { destination: destination.map_err(damaged)?, paused })
        };
        rows.iter().map(read).collect()
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        parked::list(&*self.wire().await?, destination, &selection, page).await
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        let replayed = parked::replay(&*self.wire().await?, destination, &selection).await?;
        self.ring();
        Ok(replayed)
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        Ok(parked::forget(&*self.wire().await?, destination, &selection).await?)
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        let wire = self.wire().await?;
        lag::lag(&wire, destination).await
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

/// The row that is always there.
fn first(rows: &[tokio_postgres::Row]) -> Result<&tokio_postgres::Row, StatementFailure> {
    rows.first().ok_or_else(|| StatementFailure::unanswered("the server answered without a row"))
}

/// A lane as it is stored.
fn stored_lane(number: i16) -> Result<Lane, StoreError> {
    Lane::from_number(number).ok_or_else(|| StoreError::damaged("a stored lane does not exist"))
}
