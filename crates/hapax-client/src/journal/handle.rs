use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use hapax_core::{Body, Outcome, Owner};
use tokio::sync::mpsc;

use super::{
    book::{Book, Job, Work, job},
    connect::Database,
    entry::{Entry, Hold},
    error::{JournalError, OpenError, Stopped},
    name::Name,
    options::JournalOptions,
    rule::{Begin, Begun, End, Kept, Progress, Sent, TakeUp},
    work::{
        Filter, Find, Force, Forget, Forgotten, List, Listed, Purge, Release, Renew, Settle, Start,
        Take,
    },
    writer,
};

/// What became of every operation, in one file. Clones share it.
///
/// Any number of processes on one machine may open the same file. When the last clone is dropped,
/// what is queued is finished and the file is closed before the drop returns.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

impl Journal {
    /// Opens the file, made where there is none, and starts the thread that writes to it. Blocks
    /// while it does.
    pub fn open(path: impl Into<PathBuf>, options: JournalOptions) -> Result<Self, OpenError> {
        Self::start(path.into(), options, |book| {
            let (queue, jobs) = mpsc::channel(writer::QUEUE_JOBS_MAX);
            let name = "hapax-journal".to_owned();
            let thread = thread::Builder::new().name(name).spawn(|| writer::run(book, jobs));
            let thread = Some(thread.map_err(OpenError::System)?);
            Ok(Door::Thread { queue: Some(queue), thread })
        })
    }

    /// The same without a thread: each call writes and syncs by itself, while its caller waits.
    ///
    /// For simulations, which must do the same each time they are run.
    pub fn open_inline(
        path: impl Into<PathBuf>,
        options: JournalOptions,
    ) -> Result<Self, OpenError> {
        Self::start(path.into(), options, |book| Ok(Door::Inline(Box::new(Mutex::new(book)))))
    }

    /// Writes down that this operation is pursued, before anything of it is sent.
    ///
    /// A new name is granted. A known one with the same request is granted if nobody pursues it and
    /// it has no answer yet, with the key it had.
    pub async fn begin(&self, asked: Begin) -> Result<Begun, JournalError> {
        let (len, max) = (asked.request.body().len(), self.shared.request_bytes_max);
        if len > max {
            return Err(JournalError::TooLarge { name: asked.name, len, max });
        }
        self.ask(Start(asked)).await
    }

    /// Takes up an operation with the request that was written down for it; `None` if there is no
    /// such name.
    pub async fn take_up(&self, name: Name, wish: TakeUp) -> Result<Option<Begun>, JournalError> {
        self.ask(Take { name, owner: Owner::draw(), wish }).await
    }

    /// Says that the owner lives, and how far it has come. To be called three times a lease.
    ///
    /// Once this is lost, somebody else pursues the operation, and nothing more should be sent. An
    /// answer that still comes may be settled.
    pub async fn renew(&self, hold: &Hold, progress: Progress) -> Result<Kept, JournalError> {
        self.ask(Renew { hold: hold.clone(), progress }).await
    }

    /// Leaves the operation pending, free for whoever comes next.
    pub async fn release(
        &self,
        hold: &Hold,
        progress: Progress,
        sent: Sent,
    ) -> Result<Kept, JournalError> {
        self.ask(Release { hold: hold.clone(), progress, sent }).await
    }

    /// Ends the operation.
    ///
    /// A yes is kept whoever heard it, while there is no other answer. That it was refused, is unknown
    /// or was given up is believed only of the current owner.
    pub async fn settle(&self, hold: &Hold, attempts: u32, end: End) -> Result<Kept, JournalError> {
        let end = match end {
            End::Done(answer) => End::Done(self.fitted(answer)),
            End::Refused(answer) => End::Refused(self.fitted(answer)),
            End::Unknown { .. } | End::GaveUp { .. } => end,
        };
        self.ask(Settle { hold: hold.clone(), attempts, end }).await
    }

    /// All that is known of an operation; `None` if there is no such name.
    pub async fn find(&self, name: &Name) -> Result<Option<Entry>, JournalError> {
        self.ask(Find(name.clone())).await
    }

    /// A page of entries, the oldest first. One that cannot be read is listed as such.
    pub async fn list(&self, filter: Filter) -> Result<Vec<Listed>, JournalError> {
        self.ask(List(filter)).await
    }

    /// Forgets an operation that is over, or any if forced.
    pub async fn forget(&self, name: &Name, force: Force) -> Result<Forgotten, JournalError> {
        self.ask(Forget { name: name.clone(), force }).await
    }

    /// Forgets what was done, refused or given up longer ago than the retention, up to a thousand
    /// entries, and says how many. What is pending or unknown stays.
    pub async fn purge(&self) -> Result<usize, JournalError> {
        self.ask(Purge).await
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
        door: impl FnOnce(Book) -> Result<Door, OpenError>,
    ) -> Result<Self, OpenError> {
        let book = Book::open(Database::new(path.clone(), options)?)?;
        let JournalOptions { lease, request_bytes_max, answer_bytes_max, .. } = *book.options();
        let commits = book.commits();
        let door = door(book)?;
        let shared = Shared { path, lease, request_bytes_max, answer_bytes_max, commits, door };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Hands work over; once it is, only the writer's answer says what became of it.
    async fn ask<W: Work>(&self, work: W) -> Result<W::Answer, JournalError> {
        let (job, answer) = job(work);
        match &self.shared.door {
            Door::Thread { queue: Some(queue), .. } => {
                queue.send(job).await.map_err(|_| JournalError::unavailable(Stopped))?;
            }
            Door::Thread { queue: None, .. } => return Err(JournalError::unavailable(Stopped)),
            Door::Inline(book) => {
                book.lock().unwrap_or_else(PoisonError::into_inner).perform(vec![job]);
            }
        }
        answer.await.map_err(|_| JournalError::unconfirmed(Stopped))?
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
    Thread { queue: Option<mpsc::Sender<Box<dyn Job>>>, thread: Option<JoinHandle<()>> },
    Inline(Box<Mutex<Book>>),
}

impl Drop for Door {
    fn drop(&mut self) {
        match self {
            Self::Thread { queue, thread } => {
                drop(queue.take());
                // A thread that panicked has said so.
                let _ = thread.take().map(JoinHandle::join);
            }
            Self::Inline(book) => book.get_mut().unwrap_or_else(PoisonError::into_inner).close(),
        }
    }
}
