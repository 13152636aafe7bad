//! An operation that was accepted and waits for a worker.

use std::{fmt, sync::Arc};

use hapax_core::{Attempt, Policy, Record, Store, give_back, store::Over};

use crate::{engine::Shared, permit::write_end};

/// An operation that is accepted: it will be run, here or in the next process.
///
/// Its worker begins when this is dropped, so that whoever has it can still refuse it.
pub struct Queued<S: Store> {
    shared: Option<Arc<Shared<S>>>,
    record: Arc<Record>,
    over: Over,
    policy: Policy,
}

impl<S: Store> Queued<S> {
    pub(crate) fn new(
        shared: Arc<Shared<S>>,
        record: Arc<Record>,
        over: Over,
        policy: Policy,
    ) -> Self {
        Self { shared: Some(shared), record, over, policy }
    }

    /// What is stored about it.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// Takes it out of the queue, as if nobody had asked. Should the process die before that is
    /// written, or a worker be faster, it is run.
    pub async fn refuse(mut self) {
        let Some(shared) = self.shared.take() else { return };
        let attempt = Attempt {
            id: self.record.operation.id(),
            fence: self.record.fence,
            owner: self.record.owner,
        };
        let end = give_back(&attempt, self.over, self.record.recovery, &self.policy);
        if let Err(error) = write_end(&shared.inner, &end).await {
            let id = attempt.id;
            tracing::warn!(operation = %id, %error, "a refused operation stays in the queue");
        }
    }
}

impl<S: Store> Drop for Queued<S> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.pick_up(Arc::clone(&self.record));
        }
    }
}

impl<S: Store> fmt::Debug for Queued<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queued").field(&self.record.operation).finish()
    }
}
