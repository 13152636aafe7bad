//! The store: which connection does what, and what runs to its end on its own.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hapax_core::{
    Attempt, Faults, Note, Noted, OperationId, Record, Salt, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    store::{self, Filter, Listed, Loaded, Page, Purged, Write, Written},
};

use crate::{
    clock_mark, commit,
    connect::Address,
    connection::{ConnectionSlot, SharedConnection},
    error::{Complaints, OpenError, StatementFailure, after, before, reading},
    heap_lap::HeapLap,
    incarnation::{self, AdmittedIncarnation, LeadsTo},
    list, migrate, notes, overdue, retire, row, steps,
    watch::ChangeWatchers,
};

/// How a store is opened.
///
/// ```
/// use hapax_postgres::Options;
///
/// // Somebody else migrates, as another role.
/// let options = Options { migrate: false, ..Options::default() };
/// assert_eq!(options.lanes, 2);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections that write. Two keep the server busy while one commit reaches the disk.
    pub lanes: usize,
    /// Whether the schema is created and brought up to date on opening.
    pub migrate: bool,
    /// How long the server may take to answer before a connection is given up.
    pub answer_timeout: Duration,
    /// Where tests make it fail.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        let answer_timeout = Duration::from_secs(20);
        Self { lanes: 2, migrate: true, answer_timeout, faults: Faults::default() }
    }
}

/// Records in PostgreSQL. Clones share the connections.
///
/// ```no_run
/// use hapax_engine::{Engine, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address: hapax_postgres::Address = "postgres://app@localhost/shop".parse()?;
/// let store = hapax_postgres::Store::connect(&address, hapax_postgres::Options::default()).await?;
/// let engine = Engine::start(store, Options::default());
/// engine.takes_writes().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) faults: Faults,
    pub(crate) watchers: ChangeWatchers,
    pub(crate) keeper: ConnectionSlot,
    salt: Salt,
    /// Which database records are read and written in; the keeper speaks to any but those before it.
    admitted: Arc<AdmittedIncarnation>,
    lanes: Vec<WriteLane>,
    pub(crate) reader: ConnectionSlot,
    pub(crate) sweep_lap: HeapLap,
    pub(crate) purge_lap: HeapLap,
    pub(crate) complaints: Complaints,
}

/// A connection that writes, and how many batches are on it.
struct WriteLane {
    link: ConnectionSlot,
    busy: AtomicUsize,
}

impl Store {
    /// The places of [`Faults`] this store passes on its way to and from the server.
    pub const PLACES: &'static [&'static str] = &[
        "commit.send",
        "commit.answer",
        "load.send",
        "load.answer",
        "steps.send",
        "steps.answer",
        "overdue.send",
        "overdue.answer",
        "purge.send",
        "purge.answer",
    ];

    /// Opens the store in this database. Connections carry session settings and prepared statements,
    /// so a pooler in between must pool by session; one that does not is refused.
    pub async fn connect(address: impl Into<Address>, options: Options) -> Result<Self, OpenError> {
        let address = address.into();
        let salt = migrate::open(&address, options.migrate).await?;
        let link = || ConnectionSlot::new(&address, options.answer_timeout);
        let admitted = Arc::<AdmittedIncarnation>::default();
        let lane = || WriteLane {
            link: link().to(LeadsTo::Admitted(Arc::clone(&admitted))),
            busy: AtomicUsize::new(0),
        };
        let lanes = (0..options.lanes.max(1)).map(|_| lane()).collect();
        let onwards = || link().to(LeadsTo::NothingBefore(Arc::clone(&admitted)));
        let (watchers, keeper) = (ChangeWatchers::new(onwards()), onwards());
        let reader = link().to(LeadsTo::Admitted(Arc::clone(&admitted)));
        let faults = options.faults;
        let complaints = Complaints::default();
        let (sweep_lap, purge_lap) = (HeapLap::default(), HeapLap::default());
        let shared = Shared {
            faults,
            watchers,
            keeper,
            salt,
            admitted,
            lanes,
            reader,
            sweep_lap,
            purge_lap,
            complaints,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Creates the schema or brings it up to date. Safe to run from many processes at once.
    pub async fn migrate(address: impl Into<Address>) -> Result<(), OpenError> {
        migrate::open(&address.into(), true).await.map(|_| ())
    }
}

impl store::Store for Store {
    fn salt(&self) -> Salt {
        self.shared.salt
    }

    fn lanes(&self) -> usize {
        self.shared.lanes.len()
    }

    /// A batch is one statement: once it is sent, the server finishes it, whether or not anybody
    /// still waits for the answer.
    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        commit::commit(&self.shared, &batch).await
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let loaded = self.shared.load(&ids).await;
        let loaded = loaded.inspect_err(|failure| self.shared.complaints.raise(failure));
        loaded.unwrap_or_else(|failure| vec![Err(reading(failure)); ids.len()])
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        steps::steps(&self.shared, id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        let shared = Arc::clone(&self.shared);
        let found = detached(async move { overdue::overdue(&shared, limit).await }).await;
        found.flatten().map_err(reading)
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        let shared = Arc::clone(&self.shared);
        let purged = detached(async move { retire::purge(&shared, limit).await }).await;
        Ok(purged.flatten()?)
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        clock_mark::read(&self.shared).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        Ok(clock_mark::keep(&self.shared, mark).await?)
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        incarnation::read(&self.shared).await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        Ok(incarnation::keep(&self.shared, &change).await?)
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.shared.admitted.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        list::list(&self.shared, &filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        Ok(commit::withdraw(&self.shared, &attempt).await?)
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        Ok(notes::note(&self.shared, &note).await?)
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        notes::notes(&self.shared, id, limit).await
    }

    async fn watch(&self, id: OperationId) {
        self.shared.watchers.watch(&self.shared.keeper, id).await;
    }
}

impl Shared {
    /// The write connection with the least to do.
    pub(crate) fn lane(&self) -> Busy<'_> {
        let least = self.lanes.iter().min_by_key(|lane| lane.busy.load(Ordering::Relaxed));
        let lane = least.unwrap_or(&self.lanes[0]);
        lane.busy.fetch_add(1, Ordering::Relaxed);
        Busy(lane)
    }

    async fn load(
        &self,
        ids: &[OperationId],
    ) -> Result<Vec<Result<Loaded, StoreError>>, StatementFailure> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let wire = self.reader.wire().await?;
        self.faults.at("load.send").map_err(before)?;
        let found = row::read(&wire, ids).await;
        self.faults.at("load.answer").map_err(after)?;
        found
    }
}

/// A lane counted as busy until this is dropped.
pub(crate) struct Busy<'a>(&'a WriteLane);

impl Busy<'_> {
    pub(crate) async fn wire(&self) -> Result<Arc<SharedConnection>, StatementFailure> {
        self.0.link.wire().await
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("lanes", &self.shared.lanes.len()).finish_non_exhaustive()
    }
}

/// Runs work to its end, even if nobody waits for it any more: what is half done on a connection
/// would be in the way of the next.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StatementFailure> {
    tokio::spawn(work).await.map_err(StatementFailure::unanswered)
}
