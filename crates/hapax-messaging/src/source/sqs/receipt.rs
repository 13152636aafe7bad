//! What a message of SQS is settled by.

use std::{sync::Arc, time::Duration};

use super::{QueueContext, ShelvedMessage};
use crate::consumer::{Disposition, Receipt, SourceError};

/// Longest time SQS hides a message.
const HIDDEN_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// What a message of SQS is settled by. Dropped without a word, the message comes again when its time
/// has run out.
#[derive(Debug)]
pub struct SqsReceipt {
    context: Arc<QueueContext>,
    handle: String,
    /// `None` once it is settled.
    group: Option<String>,
}

impl SqsReceipt {
    pub(super) fn new(context: &Arc<QueueContext>, received: &ShelvedMessage) -> Self {
        let handle = received.message.receipt_handle.clone();
        Self { context: Arc::clone(context), handle, group: received.group.clone() }
    }

    /// After its turn in its group: the next one has its own, or is put back with it.
    async fn put_back(&mut self, delay: Duration) -> Result<(), SourceError> {
        // Rounded up, so that it does not come before its time.
        let delay = delay.min(HIDDEN_MAX) + Duration::from_nanos(999_999_999);
        let behind = self.group.take().map(|group| self.context.shelf().back(&group));
        self.context.emptied.notify_one();
        let hidden = self.context.hide(&self.handle, delay).await;
        for behind in behind.into_iter().flatten() {
            // Where this fails it comes when its time has run out.
            let _ = self.context.hide(&behind.message.receipt_handle, delay).await;
        }
        hidden.map_err(|error| SourceError::new("put a message back", error))
    }
}

impl Receipt for SqsReceipt {
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        let span = self.context.options.visibility;
        let told = self.context.hide(&self.handle, span).await;
        told.map_err(|error| SourceError::new("go on with a message", error))?;
        Ok(Some(span))
    }

    async fn settle(mut self, disposition: Disposition) -> Result<(), SourceError> {
        match disposition {
            Disposition::Later(delay) => self.put_back(delay).await,
            Disposition::Done => {
                let deleted = self.context.delete(&self.handle).await;
                deleted.map_err(|error| SourceError::new("settle a message", error))?;
                if let Some(group) = self.group.take() {
                    self.context.shelf().done(&group);
                    self.context.filled.notify_one();
                }
                Ok(())
            }
        }
    }
}

impl Drop for SqsReceipt {
    fn drop(&mut self) {
        // What is behind it must not overtake it: it comes again after it.
        if let Some(group) = self.group.take() {
            self.context.shelf().back(&group);
            self.context.emptied.notify_one();
        }
    }
}
