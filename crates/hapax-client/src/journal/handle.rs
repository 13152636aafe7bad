use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{Body, Outcome, Owner};
use hapax_sqlite_file::{
    Connect as _, FileWriter, GroupWrite, Stopped, Threads, TransactError, WriterJob,
};
use tokio::sync::oneshot;

use super::{
    connect::Database,
    entry::{JournalEntry, OperationHold},
    error::{JournalError, OpenError},
    name::Name,
    options::JournalOptions,
    rule::{Begin, OwnerWriteResult, PursuitAdmission, PursuitEnd, PursuitProgress, Sent, TakeUp},
    transaction::{JournalWork, QueuedWork, job},
    work::{
        BeginEntry, EntryFilter, Find, Force, Forget, Forgotten, List, ListedEntry, PurgeEntries,
        ReleaseHold, RenewHold, SettleEntry, Take,
    },
};

/// Jobs that may wait for the writer; beyond them callers wait to hand theirs over.
const QUEUE_JOBS_MAX: usize = 1024;

/// What became of every operation, in one file. Clones share it.
///
/// Any number of processes on one machine may open the same file. When the last clone is dropped,
/// what is queued is finished and the file is closed before the drop returns.
///
/// ```
/// use hapax_client::{
///     Client,
///     journal::{EntryFilter, EntryStateTag, Journal, JournalOptions},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let journal = Journal::open(file, JournalOptions::default())?;
/// let client = Client::builder().journal_opened(journal.clone()).build_on(app)?;
/// client.operation("charge-order-42").post("https://api.example.com/charges").send().await?;
///
/// let done = EntryFilter { state: Some(EntryStateTag::Done), ..EntryFilter::default() };
/// assert_eq!(journal.list(done).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

impl Journal {
    /// Opens the file, made where there is none, and starts the thread that writes to it. Blocks
    /// while it does.
    pub fn open(path: impl Into<PathBuf>, options: JournalOptions) -> Result<Self, OpenError> {
        Self::start(path.into(), options, |writer| {
            let (mut threads, jobs) = Threads::new(QUEUE_JOBS_MAX);
            let file = writer.database().file().clone();
            let started = threads.spawn("hapax-journal", || writer.run(jobs));
            started.map_err(|source| file.denied(source))?;
            Ok(Door::Thread(threads))
        })
    }

    /// The same without a thread: each call writes and syncs by itself, while its caller waits.
    ///
    /// For simulations, which must do the same each time they are run.
    pub fn open_inline(
        path: impl Into<PathBuf>,
        options: JournalOptions,
    ) -> Result<Self, OpenError> {
        Self::start(path.into(), options, |writer| Ok(Door::Inline(Box::new(Mutex::new(writer)))))
    }

    /// Writes down that this operation is pursued, before anything of it is sent.
    ///
    /// A new name is granted. A known one with the same request is granted if nobody pursues it and
    /// it has no answer yet, with the key it had.
    pub async fn begin(&self, asked: Begin) -> Result<PursuitAdmission, JournalError> {
        let (len, max) = (asked.request.body().len(), self.shared.request_bytes_max);
        if len > max {
            return Err(JournalError::TooLarge { name: asked.name, len, max });
        }
        self.ask(BeginEntry(asked)).await
    }

    /// Takes up an operation with the request that was written down for it; `None` if there is no
    /// such name.
    pub async fn take_up(
        &self,
        name: Name,
        wish: TakeUp,
    ) -> Result<Option<PursuitAdmission>, JournalError> {
        self.ask(Take { name, owner: Owner::draw(), wish }).await
    }

    /// Says that the owner lives, and how far it has come. To be called three times a lease.
    ///
    /// Once this is lost, somebody else pursues the operation, and nothing more should be sent. An
    /// answer that still comes may be settled.
    pub async fn renew(
        &self,
        hold: &OperationHold,
        progress: PursuitProgress,
    ) -> Result<OwnerWriteResult, JournalError> {
        self.ask(RenewHold { hold: hold.clone(), progress }).await
    }

    /// Leaves the operation pending, free for whoever comes next.
    pub async fn release(
        &self,
        hold: &OperationHold,
        progress: PursuitProgress,
        sent: Sent,
    ) -> Result<OwnerWriteResult, JournalError> {
        self.ask(ReleaseHold { hold: hold.clone(), progress, sent }).await
    }

    /// Ends the operation.
    ///
    /// A yes is kept whoever heard it, while there is no other answer. That it was refused, is unknown
    /// or was given up is believed only of the current owner.
    pub async fn settle(
        &self,
        hold: &OperationHold,
        attempts: u32,
        end: PursuitEnd,
    ) -> Result<OwnerWriteResult, JournalError> {
        let end = match end {
            PursuitEnd::Done(answer) => PursuitEnd::Done(self.fitted(answer)),
            PursuitEnd::Refused(answer) => PursuitEnd::Refused(self.fitted(answer)),
            PursuitEnd::Unknown { .. } | PursuitEnd::GaveUp { .. } => end,
        };
        self.ask(SettleEntry { hold: hold.clone(), attempts, end }).await
    }

    /// All that is known of an operation; `None` if there is no such name.
    pub async fn find(&self, name: &Name) -> Result<Option<JournalEntry>, JournalError> {
        self.ask(Find(name.clone())).await
    }

    /// A page of entries, the oldest first. One that cannot be read is listed as such.
    pub async fn list(&self, filter: EntryFilter) -> Result<Vec<ListedEntry>, JournalError> {
        self.ask(List(filter)).await
    }

    /// Forgets an operation that is over, or any if forced.
    pub async fn forget(&self, name: &Name, force: Force) -> Result<Forgotten, JournalError> {
        self.ask(Forget { name: name.clone(), force }).await
    }

    /// Forgets what was done, refused or given up longer ago than the retention, up to a thousand
    /// entries, and says how many. What is pending or unknown stays.
    pub async fn purge(&self) -> Result<usize, JournalError> {
        self.ask(PurgeEntries).await
    }

    /// How long an owner that says nothing is taken to be alive.
    pub fn lease(&self) -> Duration {
        self.shared.lease
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// What it has done since it was opened.
    pub fn stats(&self) -> JournalStats {
        JournalStats { commits: self.shared.commits.load(Relaxed) }
    }

    fn start(
        path: PathBuf,
        options: JournalOptions,
        door: impl FnOnce(FileWriter<Database>) -> Result<Door, OpenError>,
    ) -> Result<Self, OpenError> {
        let (database, connection) = Database::open(path.clone(), options)?;
        let JournalOptions { lease, request_bytes_max, answer_bytes_max, .. } = database.options;
        let commits = Arc::clone(&database.commits);
        let door = door(FileWriter::new(database, connection))?;
        let shared = Shared { path, lease, request_bytes_max, answer_bytes_max, commits, door };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Hands work over; once it is, only the writer's answer says what became of it.
    async fn ask<W: JournalWork>(&self, work: W) -> Result<W::Answer, JournalError> {
        match &self.shared.door {
            Door::Thread(threads) => {
                threads.ask(|reply| WriterJob::Grouped(job(work, reply))).await?
            }
            Door::Inline(writer) => {
                let (reply, answer) = oneshot::channel();
                perform_inline(writer, job(work, reply));
                answer.await.map_err(|_| TransactError::unconfirmed(Stopped))?
            }
        }
    }

    /// Of a body that is too large to keep, its length.
    fn fitted(&self, answer: Outcome) -> Outcome {
        let Body::Kept(body) = answer.body() else { return answer };
        if body.len() <= self.shared.answer_bytes_max {
            return answer;
        }
        let len = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let (status, headers) = (answer.status(), answer.headers().to_vec());
        Outcome::new(status, headers, Body::NotKept { len }).unwrap_or(answer)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// What a journal has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalStats {
    /// Transactions that were written and synced: what is asked for at the same time shares one.
    pub commits: u64,
}

struct Shared {
    path: PathBuf,
    lease: Duration,
    request_bytes_max: usize,
    answer_bytes_max: usize,
    commits: Arc<AtomicU64>,
    door: Door,
}

/// Where work is handed over.
enum Door {
    Thread(Threads<WriterJob<Box<dyn QueuedWork>, Database>>),
    Inline(Box<Mutex<FileWriter<Database>>>),
}

fn perform_inline(writer: &Mutex<FileWriter<Database>>, job: Box<dyn QueuedWork>) {
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    GroupWrite::perform(vec![job], &mut writer);
}
