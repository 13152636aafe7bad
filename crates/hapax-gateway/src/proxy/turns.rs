//! How many requests that are not protected the upstream is given at one time.
//!
//! Their clients decide how long they take: an upload lasts as long as its client sends, a download
//! as long as it reads. Some connections are kept for protected requests, which are whole before
//! they are sent and read without their clients; and uploads leave some to requests that are whole.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{client::SendError, config::Upstream};

/// Which part of what is not reserved may be used by uploads at one time.
const UPLOADS_PART: usize = 2;

/// The turns of one worker's unprotected requests.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    /// Beside the others, for what lasts as long as both ends wish; `None` for nothing of the kind.
    lasting: Option<Arc<Semaphore>>,
    patience: Duration,
}

impl Turns {
    pub(super) fn new(upstream: &Upstream) -> Self {
        let all = upstream.connections_max.saturating_sub(upstream.reserve).max(1);
        let all = all.min(Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(all)),
            uploads: Arc::new(Semaphore::new((all / UPLOADS_PART).max(1))),
            lasting: (upstream.long_lived_max > 0).then(|| {
                Arc::new(Semaphore::new(upstream.long_lived_max.min(Semaphore::MAX_PERMITS)))
            }),
            patience: upstream.connect_timeout,
        }
    }

    /// A turn for one exchange.
    pub(super) async fn take(&self) -> Result<OwnedSemaphorePermit, SendError> {
        self.of(&self.all).await
    }

    /// A turn for a body that is still on its way, held until it has come.
    pub(super) async fn upload(&self) -> Result<OwnedSemaphorePermit, SendError> {
        self.of(&self.uploads).await
    }

    /// Whether anything may last as long as both ends wish.
    pub(super) fn may_last(&self) -> bool {
        self.lasting.is_some()
    }

    /// A turn for what may last as long as both ends wish. Nobody waits for one: those who have it
    /// may keep it for ever.
    pub(super) fn lasting(&self) -> Result<OwnedSemaphorePermit, SendError> {
        let turn = self.lasting.as_ref().map(|turns| Arc::clone(turns).try_acquire_owned());
        match turn {
            Some(Ok(turn)) => Ok(turn),
            Some(Err(_)) | None => {
                let why = "as many connections as allowed go on in another protocol";
                Err(SendError::NothingSent(why.into()))
            }
        }
    }

    async fn of(&self, turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, SendError> {
        if let Ok(turn) = Arc::clone(turns).try_acquire_owned() {
            return Ok(turn);
        }
        match Box::pin(timeout(self.patience, Arc::clone(turns).acquire_owned())).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => {
                let why = "too many requests that are not protected are under way";
                Err(SendError::NothingSent(why.into()))
            }
        }
    }
}
