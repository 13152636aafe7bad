//! Amazon SQS: a queue, long-polled.

mod read;
mod receipt;
mod shelf;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax_core::inbox::Partition;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep},
};

pub use self::receipt::SqsReceipt;
use self::shelf::{Shelf, ShelvedMessage};
use crate::{
    consumer::{Arrived, Delivery, Source, SourceError},
    sqs::{self, Handle, Meaning, Queue, Receive, SqsError},
};

/// Most messages of one request, and the longest wait for them: what SQS takes.
const BATCH_MAX: usize = 10;
const WAIT: Duration = Duration::from_secs(20);
/// How long to wait before messages are asked for again where that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Messages of a queue.
///
/// A message that is [done](crate::consumer::Disposition::Done) is deleted. One for
/// [later](crate::consumer::Disposition::Later) is hidden for so long. In a FIFO queue one message of
/// a group is under way at a time, and what is put back goes before those behind it.
///
/// ```no_run
/// use hapax_messaging::{
///     source::sqs::{Sqs, SqsOptions},
///     sqs::{Queue, QueueOptions},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo";
/// let queue = Queue::new(url, QueueOptions::default())?;
/// let source = Sqs::open(queue, SqsOptions::default()).await?;
/// # drop(source);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sqs {
    context: Arc<QueueContext>,
    fetching: JoinHandle<()>,
    retention: Option<Duration>,
}

/// How messages are asked for.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_messaging::source::sqs::SqsOptions;
///
/// let options = SqsOptions { visibility: Duration::from_secs(120), ..SqsOptions::default() };
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SqsOptions {
    /// For how long SQS hides a message that was handed over: until then there has to be a word about
    /// it. Whole seconds, 12 hours at most.
    pub visibility: Duration,
    /// How long an answer may take that needs no waiting.
    pub within: Duration,
}

impl Default for SqsOptions {
    fn default() -> Self {
        Self { visibility: Duration::from_secs(30), within: Duration::from_secs(10) }
    }
}

/// What a source and its receipts share.
#[derive(Debug)]
struct QueueContext {
    queue: Queue,
    options: SqsOptions,
    shelf: Mutex<Shelf>,
    /// Why nothing more comes.
    broken: Mutex<Option<SqsError>>,
    filled: Notify,
    emptied: Notify,
}

impl Sqs {
    /// Opens a queue.
    pub async fn open(queue: Queue, options: SqsOptions) -> Result<Self, SourceError> {
        let asked = queue.numbers(["MessageRetentionPeriod"], options.within).await;
        let [retention] = asked.map_err(|error| SourceError::new("find the queue", error))?;
        let context = Arc::new(QueueContext {
            queue,
            options,
            shelf: Mutex::default(),
            broken: Mutex::default(),
            filled: Notify::new(),
            emptied: Notify::new(),
        });
        // In a task of its own: what is on its way when a call of `next` is dropped is not lost.
        let fetching = tokio::spawn(fetch(Arc::clone(&context)));
        Ok(Self { context, fetching, retention: retention.map(Duration::from_secs) })
    }
}

impl Source for Sqs {
    type Receipt = SqsReceipt;

    async fn next(&mut self) -> Result<Arrived<SqsReceipt>, SourceError> {
        loop {
            let first = self.context.shelf().first().map(|first| {
                (first.message.receipt_handle.clone(), first.group.clone(), first.at.elapsed())
            });
            let Some((handle, group, age)) = first else {
                if let Some(error) = self.context.broken().take() {
                    return Err(SourceError::new("receive messages", error));
                }
                self.context.filled.notified().await;
                continue;
            };
            if age > self.context.options.visibility / 2 {
                if let Err(error) =
                    self.context.hide(&handle, self.context.options.visibility).await
                {
                    // It is not ours any more, and neither are those behind it.
                    tracing::debug!(%error, "a message waited too long here; it comes again");
                    let mut shelf = self.context.shelf();
                    shelf.take();
                    group.map(|group| shelf.back(&group));
                    continue;
                }
                self.context
                    .shelf()
                    .first()
                    .into_iter()
                    .for_each(|first| first.at = Instant::now());
            }
            let Some(received) = self.context.shelf().take() else { continue };
            self.context.emptied.notify_one();
            let receipt = SqsReceipt::new(&self.context, &received);
            let incoming = read::incoming(received, self.context.queue.name());
            return Ok(Arrived::Message(Delivery { incoming, receipt }));
        }
    }

    async fn start(&mut self, _: &Partition, _: Option<i64>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn release(&mut self, _: &[Partition]) -> Result<(), SourceError> {
        Ok(())
    }

    /// As long as the queue keeps messages.
    fn longest_redelivery(&self) -> Option<Duration> {
        self.retention
    }
}

impl Drop for Sqs {
    fn drop(&mut self) {
        self.fetching.abort();
    }
}

/// Asks for messages whenever there is room for them.
async fn fetch(context: Arc<QueueContext>) {
    loop {
        while context.shelf().len() >= BATCH_MAX {
            context.emptied.notified().await;
        }
        match context.receive().await {
            Ok(messages) => {
                let keeps_order = context.queue.keeps_order();
                let received = |message: sqs::SqsMessage| {
                    let group = message.attributes.get("MessageGroupId").cloned();
                    ShelvedMessage {
                        message,
                        group: group.filter(|_| keeps_order),
                        at: Instant::now(),
                    }
                };
                context.shelf().put(messages.into_iter().map(received));
                context.filled.notify_one();
            }
            Err(error) if error.meaning() == Meaning::NotNow => {
                tracing::warn!(%error, "no messages come from SQS; asking again");
                sleep(PAUSE).await;
            }
            Err(error) => {
                *context.broken() = Some(error);
                context.filled.notify_one();
                return;
            }
        }
    }
}

impl QueueContext {
    async fn receive(&self) -> Result<Vec<sqs::SqsMessage>, SqsError> {
        let asked = Receive {
            max_number_of_messages: BATCH_MAX,
            wait_time_seconds: WAIT.as_secs(),
            visibility_timeout: self.options.visibility.as_secs(),
            message_system_attribute_names: ["All"],
            message_attribute_names: ["All"],
        };
        let patience = WAIT + self.options.within;
        let received: sqs::ReceivedMessages =
            self.queue.call("ReceiveMessage", asked, patience).await?;
        Ok(received.messages)
    }

    /// Hides a message from others for so long, from now on.
    async fn hide(&self, receipt_handle: &str, span: Duration) -> Result<(), SqsError> {
        let visibility_timeout = Some(span.as_secs());
        let asked = Handle { receipt_handle, visibility_timeout };
        let within = self.options.within;
        self.queue.call("ChangeMessageVisibility", asked, within).await.map(|sqs::Nothing {}| ())
    }

    async fn delete(&self, receipt_handle: &str) -> Result<(), SqsError> {
        let asked = Handle { receipt_handle, visibility_timeout: None };
        let within = self.options.within;
        self.queue.call("DeleteMessage", asked, within).await.map(|sqs::Nothing {}| ())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self) -> MutexGuard<'_, Option<SqsError>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
