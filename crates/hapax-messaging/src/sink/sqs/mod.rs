//! Amazon SQS.

mod entry;

use std::{collections::HashMap, time::Duration};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hapax_core::outbox::Stored;
use tokio::{
    sync::{OnceCell, mpsc, oneshot},
    time::Instant,
};

use self::entry::SqsEntry;
use super::{CloudEvents, Outage, Sink, Verdict, in_chains};
use crate::sqs::{BatchAnswers, Entries, Meaning, Queue, QueueError, SqsError};

/// Most messages of one request: what SQS takes.
const BATCH_MAX: usize = 10;
/// How many requests are under way at the same time, in each call.
const REQUESTS_AT_ONCE: usize = 16;
const LETTERS_AT_ONCE: usize = BATCH_MAX * REQUESTS_AT_ONCE;
/// What a queue takes in one request if it does not say.
const REQUEST_BYTES_MAX: u64 = 256 << 10;

/// Sends to a FIFO queue: a key is a message group, the event's id its deduplication id.
///
/// The payload is the body, in base64 where it is not text that SQS takes; attributes of the message
/// say the rest. SQS may take the later of two messages of a request and not the earlier: so a
/// request has one event of a key at most, and the next is sent when that is answered.
///
/// ```no_run
/// use hapax_messaging::{
///     sink::Sqs,
///     sqs::{Queue, QueueOptions},
/// };
///
/// let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo";
/// let sink = Sqs::to(Queue::new(url, QueueOptions::default())?)?;
/// # drop(sink);
/// # Ok::<(), hapax_messaging::sqs::QueueError>(())
/// ```
#[derive(Debug)]
pub struct Sqs {
    queue: Queue,
    events: CloudEvents,
    within: Duration,
    request_bytes_max: OnceCell<usize>,
}

impl Sqs {
    /// To this queue, which has to be one that keeps the order of groups.
    pub fn to(queue: Queue) -> Result<Self, QueueError> {
        if !queue.keeps_order() {
            return Err(QueueError::NoOrder { name: queue.name().to_owned() });
        }
        let (events, within) = (CloudEvents::default(), Duration::from_secs(10));
        Ok(Self { queue, events, within, request_bytes_max: OnceCell::new() })
    }

    /// The same with events that say where they come from.
    #[must_use]
    pub fn events(self, events: CloudEvents) -> Self {
        Self { events, ..self }
    }

    /// The same with another time an answer may take until it is an outage; 10 seconds if nothing is
    /// said. A call ends within three times that.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    async fn request_bytes_max(&self) -> Result<usize, Outage> {
        let ask = || async {
            let [bytes] = self.queue.numbers(["MaximumMessageSize"], self.within).await?;
            Ok(usize::try_from(bytes.unwrap_or(REQUEST_BYTES_MAX)).unwrap_or(usize::MAX))
        };
        self.request_bytes_max.get_or_try_init(ask).await.copied().map_err(outage)
    }

    /// Hands one event to whoever carries letters, and waits for what becomes of it.
    async fn post(
        &self,
        event: &Stored,
        deadline: Instant,
        out: &mpsc::Sender<PostedEvent>,
    ) -> Result<Verdict, Outage> {
        if Instant::now() > deadline {
            return Ok(Verdict::Missed("there was no time left for it".to_owned()));
        }
        let letter = match SqsEntry::of(event, &self.events) {
            Ok(letter) => letter,
            Err(why) => return Ok(Verdict::Refused(why)),
        };
        let (answer, answered) = oneshot::channel();
        let posted = out.send(PostedEvent { letter, answer }).await;
        posted.map_err(|_| Outage::new("nobody carries letters any more"))?;
        answered.await.map_err(Outage::new)
    }

    /// Carries what is posted, in as few requests as there can be, until nothing more is.
    async fn carry(
        &self,
        mut posted: mpsc::Receiver<PostedEvent>,
        bytes_max: usize,
    ) -> Result<(), Outage> {
        stream::poll_fn(move |cx| posted.poll_recv(cx))
            .ready_chunks(BATCH_MAX)
            .flat_map(|posted| stream::iter(fitting(posted, bytes_max)))
            .map(|posted| self.request(posted))
            .buffer_unordered(REQUESTS_AT_ONCE)
            .try_collect()
            .await
    }

    async fn request(&self, posted: Vec<PostedEvent>) -> Result<(), Outage> {
        let verdicts = match self.try_request(&posted).await {
            Ok(verdicts) => verdicts,
            Err(error) if error.meaning() != Meaning::Never => return Err(outage(error)),
            Err(error) if posted.len() == 1 => vec![Verdict::Refused(error.to_string())],
            // One of them spoils the whole request: alone it is found.
            Err(_) => {
                for one in posted {
                    Box::pin(self.request(vec![one])).await?;
                }
                return Ok(());
            }
        };
        for (posted, verdict) in posted.into_iter().zip(verdicts) {
            // Who does not wait any more is sent it again.
            let _ = posted.answer.send(verdict);
        }
        Ok(())
    }

    async fn try_request(&self, posted: &[PostedEvent]) -> Result<Vec<Verdict>, SqsError> {
        let entries = posted.iter().enumerate().map(|(at, posted)| posted.letter.entry(at));
        let entries = Entries { entries: entries.collect() };
        let answers: BatchAnswers =
            self.queue.call("SendMessageBatch", entries, self.within).await?;
        let mut verdicts = HashMap::with_capacity(posted.len());
        for taken in answers.successful {
            verdicts.insert(taken.id, Verdict::Taken);
        }
        for failed in answers.failed {
            let why = format!("{}: {}", failed.code, failed.message.unwrap_or_default());
            let verdict =
                if failed.sender_fault { Verdict::Refused(why) } else { Verdict::Missed(why) };
            verdicts.insert(failed.id, verdict);
        }
        let silence = || Verdict::Missed("nothing was answered about it".to_owned());
        let of = |at: usize| verdicts.remove(&at.to_string()).unwrap_or_else(silence);
        Ok((0..posted.len()).map(of).collect())
    }
}

impl Sink for Sqs {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let bytes_max = self.request_bytes_max().await?;
        let deadline = Instant::now() + self.within;
        let (out, posted) = mpsc::channel(LETTERS_AT_ONCE);
        let posting = async move {
            in_chains(events, LETTERS_AT_ONCE, |event| self.post(event, deadline, &out)).await
        };
        let (verdicts, ()) = tokio::try_join!(posting, self.carry(posted, bytes_max))?;
        Ok(verdicts)
    }
}

/// An event on its way, and where its verdict is waited for.
struct PostedEvent {
    letter: SqsEntry,
    answer: oneshot::Sender<Verdict>,
}

/// In pieces that fit into a request, each of one letter at least.
fn fitting(posted: Vec<PostedEvent>, bytes_max: usize) -> Vec<Vec<PostedEvent>> {
    let mut pieces: Vec<Vec<PostedEvent>> = Vec::new();
    let mut bytes = usize::MAX;
    for posted in posted {
        bytes = bytes.saturating_add(posted.letter.bytes());
        match pieces.last_mut() {
            Some(piece) if bytes <= bytes_max => piece.push(posted),
            Some(_) | None => {
                bytes = posted.letter.bytes();
                pieces.push(vec![posted]);
            }
        }
    }
    pieces
}

fn outage(error: SqsError) -> Outage {
    match error.meaning() {
        Meaning::NotAllowed => Outage::until_resumed(error),
        Meaning::NotNow | Meaning::Never => Outage::new(error),
    }
}
