//! A producer, until it fails.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use rdkafka::{
    ClientConfig, ClientContext,
    config::FromClientConfigAndContext,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{FutureProducer, Producer, PurgeConfig},
};
use tokio::sync::watch;

use super::Trouble;

/// A producer and the first trouble it had, after which it is not used again: what is queued in it
/// then would come after what is sent by the next one.
pub(super) struct Line {
    pub(super) producer: FutureProducer<Ear>,
    trouble: Arc<watch::Sender<Option<Trouble>>>,
    /// Whether transactions were made ready.
    pub(super) ready: AtomicBool,
}

impl Line {
    /// A new producer. It connects by itself.
    pub(super) fn open(config: &ClientConfig) -> Result<Arc<Self>, KafkaError> {
        let trouble = Arc::new(watch::Sender::new(None));
        let ear = Ear { trouble: Arc::clone(&trouble) };
        let producer = FutureProducer::from_config_and_context(config, ear)?;
        Ok(Arc::new(Self { producer, trouble, ready: AtomicBool::new(false) }))
    }

    pub(super) fn is_spent(&self) -> bool {
        self.trouble.borrow().is_some()
    }

    /// Its first trouble, if it had any.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.borrow().clone()
    }

    /// Waits for the first trouble.
    pub(super) async fn spent(&self) -> Trouble {
        let mut heard = self.trouble.subscribe();
        let trouble = heard.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        trouble.unwrap_or(Trouble::GivenUp)
    }

    /// Ends it for all calls: what it holds is dropped, and every call is told.
    pub(super) fn retire(&self, trouble: Trouble) {
        note(&self.trouble, trouble);
        self.producer.purge(PurgeConfig::default().queue().inflight());
    }

    /// Ends it, without letting anybody wait for its threads.
    pub(super) fn put_away(self: Arc<Self>) {
        const PATIENCE: Duration = Duration::from_millis(20);
        let closing = thread::Builder::new().name("hapax-kafka-close".to_owned());
        let mut line = self;
        // Where there is no thread to be had, its threads are waited for after all.
        let _ = closing.spawn(move || {
            line.retire(Trouble::GivenUp);
            // Calls that still have it hear of its end and let it go.
            while let Err(shared) = Arc::try_unwrap(line) {
                thread::sleep(PATIENCE);
                line = shared;
            }
        });
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("trouble", &*self.trouble.borrow()).finish_non_exhaustive()
    }
}

/// Hears what the producer says about itself.
pub(super) struct Ear {
    trouble: Arc<watch::Sender<Option<Trouble>>>,
}

impl ClientContext for Ear {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "heard from the Kafka producer");
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                note(&self.trouble, Trouble::Down(reason.to_owned()));
            }
            Some(RDKafkaErrorCode::Fatal | RDKafkaErrorCode::GaplessGuarantee) => {
                note(&self.trouble, Trouble::Failed(error));
            }
            Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced) => {
                note(&self.trouble, Trouble::Fenced(error));
            }
            _ => {}
        }
    }
}

/// The first trouble is the one to tell.
fn note(trouble: &watch::Sender<Option<Trouble>>, new: Trouble) {
    trouble.send_if_modified(|first| {
        let is_first = first.is_none();
        first.get_or_insert(new);
        is_first
    });
}
