//! An operation that was accepted and waits for a worker.

use std::{fmt, sync::Arc};

use hapax_core::{Attempt, Policy, Record, give_back, store::Over};

use crate::{engine::Shared, permit::write_end};

/// An operation that is accepted: it will be run, here or in the next process.
///
/// Its worker begins when this is dropped, so that whoever has it can still refuse it.
///
/// ```
/// use hapax_core::{RunMode, StateTag};
/// use hapax_engine::{Admission, BeginRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # use hapax_core::{Key, Operation, Scope, Tenant};
/// # let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// # let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// # let request = hapax_core::RequestParts { body: b"100", ..Default::default() }.into();
/// # let mode = hapax_core::RunMode::Run { request: None };
/// # let policy = hapax_core::Policy::default();
/// # let ask = hapax_engine::BeginRequest { operation, request, mode, policy };
/// # let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
/// let later = BeginRequest { mode: RunMode::Queue { request: "pay 100".into() }, ..ask };
/// let Admission::Queued(queued) = engine.begin(&later).await? else { return Ok(()) };
/// assert_eq!(queued.record().tag(), StateTag::Pending);
/// # Ok(())
/// # }
/// ```
pub struct Queued {
    shared: Option<Arc<Shared>>,
    record: Arc<Record>,
    over: Over,
    policy: Policy,
}

impl Queued {
    pub(crate) fn new(
        shared: Arc<Shared>,
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

impl Drop for Queued {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.pick_up(Arc::clone(&self.record));
        }
    }
}

impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queued").field(&self.record.operation).finish()
    }
}
