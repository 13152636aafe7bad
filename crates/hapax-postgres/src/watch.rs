//! Hints that a record was settled: in this process at once, in others by a notification.
//!
//! A notification in the commit would make all commits of the database wait for each other, so it
//! is sent afterwards, together with others, from the connection that also listens. Only records
//! that somebody watches are announced. A lost hint costs time, never truth.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use hapax_core::OperationId;
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};

use crate::{
    connection::{ConnectionSlot, SharedConnection},
    error::StatementFailure,
    row::Id,
};

/// How long settled records are gathered before they are announced together.
const GATHER: Duration = Duration::from_millis(5);
/// How long to wait before a lost listener connects again.
const RECONNECT: Duration = Duration::from_secs(1);
/// Settled records waiting to be announced, and announced together; further ones are not.
const ANNOUNCEMENTS_MAX: usize = 1024;

/// The mark is another version of the row, so whoever sets it files what is unfinished.
const MARK: &str = include_str!("sql/mark_watched.sql");
const LISTEN: &str = "LISTEN hapax_settled";
const ANNOUNCE: &str =
    "SELECT pg_notify('hapax_settled', replace(id::text, '-', '')) FROM unnest($1::uuid[]) AS id";

/// Who waits for what, and the listener that tells them.
pub(crate) struct ChangeWatchers {
    waiting: Arc<WaitingOperations>,
    announce: mpsc::Sender<OperationId>,
    /// What the listener needs; taken by whoever first has a use for it.
    idle: Mutex<Option<Listener>>,
}

impl ChangeWatchers {
    pub(crate) fn new(link: ConnectionSlot) -> Self {
        let (announce, settled) = mpsc::channel(ANNOUNCEMENTS_MAX);
        let waiting = Arc::new(WaitingOperations::default());
        let listener = Listener { link, waiting: Arc::clone(&waiting), settled };
        Self { waiting, announce, idle: Mutex::new(Some(listener)) }
    }

    /// Ends when the record may have been settled.
    pub(crate) async fn watch(&self, keeper: &ConnectionSlot, id: OperationId) {
        self.listen();
        let watcher = self.waiting.join(id);
        match mark(keeper, id).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => tracing::debug!(?failure, "a watched record was not marked"),
        }
        watcher.woken.notified().await;
    }

    /// Tells everyone who watches this record, here and elsewhere.
    pub(crate) fn settled(&self, id: OperationId) {
        self.listen();
        self.waiting.wake(id);
        let _ = self.announce.try_send(id);
    }

    fn listen(&self) {
        let listener = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            tokio::spawn(listener.run());
        }
    }
}

/// Marks the record, so that its settle is announced; false if it is settled or gone.
async fn mark(keeper: &ConnectionSlot, id: OperationId) -> Result<bool, StatementFailure> {
    Ok(!keeper.wire().await?.query(MARK, &[&Id(id)]).await?.is_empty())
}

struct Listener {
    link: ConnectionSlot,
    waiting: Arc<WaitingOperations>,
    settled: mpsc::Receiver<OperationId>,
}

impl Listener {
    /// Listens and announces until the store is gone.
    async fn run(mut self) {
        loop {
            let Ok((wire, notified)) = self.connect().await else {
                if self.settled.is_closed() {
                    return;
                }
                sleep(RECONNECT).await;
                continue;
            };
            // What was announced while nobody listened is not known.
            self.waiting.wake_all();
            if self.serve(&wire, notified).await {
                return;
            }
        }
    }

    async fn connect(
        &self,
    ) -> Result<(SharedConnection, mpsc::Receiver<String>), StatementFailure> {
        let (wire, notified) = self.link.connect().await.map_err(StatementFailure::not_sent)?;
        wire.execute(LISTEN).await?;
        Ok((wire, notified))
    }

    /// True when the store is gone, false when the connection is.
    async fn serve(
        &mut self,
        wire: &SharedConnection,
        mut notified: mpsc::Receiver<String>,
    ) -> bool {
        loop {
            tokio::select! {
                payload = notified.recv() => match payload {
                    Some(payload) => self.waiting.wake_named(&payload),
                    None => return false,
                },
                settled = self.settled.recv() => match settled {
                    Some(id) => {
                        let ids = self.gather(id).await;
                        if wire.query(ANNOUNCE, &[&ids]).await.is_err() {
                            return false;
                        }
                    }
                    None => return true,
                },
            }
        }
    }

    async fn gather(&mut self, first: OperationId) -> Vec<Id> {
        let mut ids = vec![Id(first)];
        let more = async {
            while ids.len() < ANNOUNCEMENTS_MAX
                && let Some(id) = self.settled.recv().await
            {
                ids.push(Id(id));
            }
        };
        let _ = timeout(GATHER, more).await;
        ids
    }
}

#[derive(Default)]
struct WaitingOperations(Mutex<HashMap<OperationId, Vec<Weak<Notify>>>>);

impl WaitingOperations {
    fn join(self: &Arc<Self>, id: OperationId) -> Watcher {
        let woken = Arc::new(Notify::new());
        self.lock().entry(id).or_default().push(Arc::downgrade(&woken));
        Watcher { id, woken, waiting: Arc::clone(self) }
    }

    fn wake(&self, id: OperationId) {
        let watchers = self.lock().remove(&id).unwrap_or_default();
        watchers.iter().filter_map(Weak::upgrade).for_each(|woken| woken.notify_one());
    }

    /// Wakes by what a notification carries: the id in hexadecimal.
    fn wake_named(&self, payload: &str) {
        if let Ok(id) = u128::from_str_radix(payload, 16) {
            self.wake(OperationId::from_bytes(id.to_be_bytes()));
        }
    }

    fn wake_all(&self) {
        let everyone: Vec<_> = self.lock().drain().flat_map(|(_, watchers)| watchers).collect();
        everyone.iter().filter_map(Weak::upgrade).for_each(|woken| woken.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Vec<Weak<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits; leaves when dropped.
struct Watcher {
    id: OperationId,
    woken: Arc<Notify>,
    waiting: Arc<WaitingOperations>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        if let Some(watchers) = waiting.get_mut(&self.id) {
            let own = Arc::downgrade(&self.woken);
            watchers.retain(|watcher| !watcher.ptr_eq(&own));
            if watchers.is_empty() {
                waiting.remove(&self.id);
            }
        }
    }
}
