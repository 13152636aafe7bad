//! A consumer, put together and run.

use std::{fmt, marker::PhantomData, sync::Arc};

use hapax_core::{
    Faults, Scope,
    inbox::{Inbox, Message},
};

use super::{
    clock::InboxClock,
    dead_letters::DeadLetters,
    error::RunError,
    handler::{HandlerError, Tx},
    naming::Naming,
    options::{Options, ProgressStorage},
    run::ConsumerLoop,
    source::Source,
    transactional::{TransactionalWorker, unknown},
    worker::Worker,
};

/// Acts on each message of a source once, in a transaction of your database.
///
/// The handler writes through the transaction it is given; the record of the message is in the same
/// one. Both commit or neither does, and the broker hears of it afterwards: a crash at any place leaves
/// the message to be delivered again, and what is stored then answers it.
///
/// ```no_run
/// # async fn start<I: hapax_core::inbox::Inbox, S: hapax_messaging::consumer::Source>(
/// #     database: I, source: S,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use hapax_core::{Scope, inbox::Message};
/// use hapax_messaging::consumer::{Consumer, HandlerError, Tx};
///
/// async fn mail<T>(mut tx: Tx<T>, message: Arc<Message>) -> Result<(), HandlerError> {
///     if message.payload.is_empty() {
///         return Err(HandlerError::failed("there is nothing to send"));
///     }
///     // ... write through `tx`, with `?` ...
///     Ok(())
/// }
///
/// let consumer = Consumer::new(Scope::parse("mailer")?, database, mail);
/// consumer.run(source, std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Consumer<I, H, F> {
    name: Scope,
    inbox: I,
    handler: H,
    options: Options,
    naming: Naming,
    dead: DeadLetters,
    faults: Faults,
    future: PhantomData<fn() -> F>,
}

impl<I, H, F> Consumer<I, H, F>
where
    I: Inbox,
    H: Fn(Tx<I::Transaction>, Arc<Message>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    /// A consumer of this name, whose handler acts in transactions of this database.
    pub fn new(name: Scope, database: I, handler: H) -> Self {
        Self {
            name,
            inbox: database,
            handler,
            options: Options::default(),
            naming: Naming::default(),
            dead: DeadLetters::table(),
            faults: Faults::default(),
            future: PhantomData,
        }
    }

    /// The same with other options.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The same with names, keys and versions of messages found elsewhere.
    #[must_use]
    pub fn naming(self, naming: Naming) -> Self {
        Self { naming, ..self }
    }

    /// The same with dead letters sent elsewhere.
    #[must_use]
    pub fn dead_letters(self, dead: DeadLetters) -> Self {
        Self { dead, ..self }
    }

    /// The same, failing where a test wants it to, at one of [`PLACES`](super::PLACES).
    #[must_use]
    pub fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Runs until the source ends, cannot go on, or `stop` does. What was begun is finished first;
    /// what was not is left to be delivered again.
    pub async fn run<S: Source>(
        self,
        source: S,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), RunError> {
        let Self { name, inbox, handler, options, naming, dead, faults, future } = self;
        let consumer = unknown(name, options.retention);
        let options_too = options.clone();
        let clock = InboxClock::default();
        let worker =
            TransactionalWorker { inbox, handler, consumer, options, dead, faults, clock, future };
        drive(source, worker, naming, options_too, stop).await
    }
}

/// Refuses what cannot be right, makes the consumer known, and runs it.
pub(super) async fn drive<S: Source, W: Worker>(
    source: S,
    mut worker: W,
    naming: Naming,
    options: Options,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    let retention = options.retention;
    if options.progress == ProgressStorage::Records
        && let Some(redelivery) = source.longest_redelivery()
        && retention < redelivery
    {
        return Err(RunError::RetentionTooShort { retention, redelivery });
    }
    worker.open().await.map_err(RunError::Store)?;
    let stop = std::pin::pin!(stop);
    ConsumerLoop::new(source, worker, naming, options).run(stop).await
}

impl<I, H, F> fmt::Debug for Consumer<I, H, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Consumer");
        shown.field("name", &self.name.as_str()).field("options", &self.options);
        shown.finish_non_exhaustive()
    }
}
