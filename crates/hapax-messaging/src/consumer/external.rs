//! Effects outside of the database, through the leased machine.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use hapax_core::{
    InvalidName, Operation, Scope, StoreError, Tenant,
    inbox::{LetterReason, Message, Partition, Proof, Taken},
};
use hapax_engine::{Engine, Ran, Workflows};

use super::{
    builder::drive,
    dead_letters::DeadLetters,
    error::RunError,
    naming::Naming,
    options::{Options, ProgressStorage},
    source::Source,
    worker::{Acceptance, DeliveryEnd, Worker},
};
use crate::sink::Sink;

/// The tenant of all messages, as `hapax.first_delivery` has it.
const TENANT: &str = "messages";

/// Acts on each message of a source once, with effects that no transaction can take back.
///
/// A message is an operation of the engine's: its scope is the consumer's name, its key the message's
/// name, its request the payload. The workflow that is registered for the scope runs it, and its steps
/// run once each. The message is acknowledged when the operation is finished, and comes again until
/// then; a workflow that gives a message up answers that it failed.
///
/// The policy of the workflow says for how long operations are remembered; it should be at least
/// [`Options::retention`], which is compared with the broker's redelivery. Guards, offsets, attempts
/// and batches are not looked at.
///
/// ```
/// use hapax_core::{AttemptAnswer, Outcome, Policy, Scope};
/// use hapax_engine::{Engine, Options, Workflows};
/// use hapax_messaging::{consumer::External, sink::Lines};
///
/// # use hapax_core::{Salt, Timestamp, memory};
/// # async fn mail(_: hapax_core::Key) -> Result<(), std::io::Error> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let mails = Workflows::new().on("mailer", Policy::default(), |run| async move {
///     run.step("mail", mail).await?;
///     Ok(AttemptAnswer::completed(Outcome::bare(200)))
/// });
/// let finisher = Some(mails.finisher());
/// let engine = Engine::start(store, Options { finisher, ..Options::default() });
/// let name = Scope::parse("mailer")?;
/// let consumer = External::new(name, engine, mails, Lines::stdout(), "mailer.dead");
/// # drop(consumer);
/// # Ok(())
/// # }
/// ```
pub struct External {
    name: Scope,
    engine: Engine,
    workflows: Workflows,
    options: Options,
    naming: Naming,
    dead: DeadLetters,
}

impl External {
    /// A consumer of this name, whose messages are operations of this engine. What has no usable name,
    /// or a name that was used for other content, goes to this sink, as this topic.
    pub fn new(
        name: Scope,
        engine: Engine,
        workflows: Workflows,
        sink: impl Sink,
        topic: impl Into<String>,
    ) -> Self {
        let (options, naming) = (Options::default(), Naming::default());
        let dead = DeadLetters::sink(sink, topic);
        Self { name, engine, workflows, options, naming, dead }
    }

    /// The same with other options.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The same with names and keys of messages found elsewhere.
    #[must_use]
    pub fn naming(self, naming: Naming) -> Self {
        Self { naming, ..self }
    }

    /// Runs until the source ends, cannot go on, or `stop` does. What was begun is finished first;
    /// what was not is left to be delivered again.
    pub async fn run<C: Source>(
        self,
        source: C,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), RunError> {
        let Self { name, engine, workflows, options, naming, dead } = self;
        let settings = Options { progress: ProgressStorage::Records, batch: 1, ..options.clone() };
        let worker = ExternalWorker { name, engine, workflows, dead, options };
        drive(source, worker, naming, settings, stop).await
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").field("name", &self.name.as_str()).finish_non_exhaustive()
    }
}

struct ExternalWorker {
    name: Scope,
    engine: Engine,
    workflows: Workflows,
    dead: DeadLetters,
    options: Options,
}

impl Worker for ExternalWorker {
    async fn open(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn act(&self, message: Arc<Message>, _: Proof) -> DeliveryEnd {
        let operation = match self.operation(&message) {
            Ok(operation) => operation,
            Err(error) => return self.later(&error),
        };
        let ran = self.workflows.run(&self.engine, &operation, message.payload.clone()).await;
        match ran {
            Ok(Ran::Answered(answer)) if !answer.meaning.is_final() => {
                DeliveryEnd::Again(self.options.outage_pause)
            }
            Ok(Ran::Answered(_) | Ran::Replayed(_) | Ran::Gone { .. }) => DeliveryEnd::Final,
            Ok(Ran::Later { after }) => DeliveryEnd::Again(after),
            Ok(Ran::Busy { lease_left }) => {
                DeliveryEnd::Again(lease_left.max(self.options.busy_pause))
            }
            Ok(Ran::Mismatch(_)) => self.put_aside(message, LetterReason::id_conflict()).await,
            // Whoever resolves it finishes it; until then it is nobody's to try.
            Ok(Ran::InDoubt { doubt }) => {
                tracing::warn!(id = message.id.as_str(), ?doubt, "a message is in doubt");
                DeliveryEnd::Again(self.options.outage_pause)
            }
            Ok(_) => DeliveryEnd::Again(self.options.outage_pause),
            Err(error) => self.later(&error),
        }
    }

    /// Each is an operation of its own.
    async fn act_together(&self, _: &[Acceptance]) -> Option<DeliveryEnd> {
        None
    }

    async fn put_aside(&self, message: Arc<Message>, reason: LetterReason) -> DeliveryEnd {
        tracing::warn!(id = message.id.as_str(), %reason, "a dead letter");
        match self.dead.send(self.name.as_str(), &message, &reason).await {
            Ok(()) => DeliveryEnd::Final,
            Err(error) => self.later(&error),
        }
    }

    async fn take(&self, _: &Partition) -> Result<Taken, StoreError> {
        Err(StoreError::unavailable("operations have no offsets"))
    }

    async fn patrol(&self) {}
}

impl ExternalWorker {
    fn operation(&self, message: &Message) -> Result<Operation, InvalidName> {
        Ok(Operation::new(Tenant::parse(TENANT)?, self.name.clone(), message.id.clone()))
    }

    fn later(&self, error: &(dyn Error + 'static)) -> DeliveryEnd {
        tracing::warn!(error, "a message is left to come again");
        DeliveryEnd::Again(self.options.outage_pause.max(Duration::from_millis(1)))
    }
}
