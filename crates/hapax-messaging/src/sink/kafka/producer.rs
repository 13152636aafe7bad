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

use super::ProducerTrouble;

/// A producer and the first trouble it had, after which it is not used again: what is queued in it
/// then would come after what is sent by the next one.
pub(super) struct EventProducer {
    pub(super) inner: FutureProducer<ProducerCallbacks>,
    trouble: Arc<watch::Sender<Option<ProducerTrouble>>>,
    /// Whether transactions were made ready.
    pub(super) ready: AtomicBool,
}

impl EventProducer {
    /// A new producer. It connects by itself.
    pub(super) fn open(config: &ClientConfig) -> Result<Arc<Self>, KafkaError> {
        let trouble = Arc::new(watch::Sender::new(None));
        let callbacks = ProducerCallbacks { trouble: Arc::clone(&trouble) };
        let inner = FutureProducer::from_config_and_context(config, callbacks)?;
        Ok(Arc::new(Self { inner, trouble, ready: AtomicBool::new(false) }))
    }

    pub(super) fn is_spent(&self) -> bool {
        self.trouble.borrow().is_some()
    }

    /// Its first trouble, if it had any.
    pub(super) fn trouble(&self) -> Option<ProducerTrouble> {
        self.trouble.borrow().clone()
    }

    /// Waits for the first trouble.
    pub(super) async fn spent(&self) -> ProducerTrouble {
        let mut heard = self.trouble.subscribe();
        let trouble = heard.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        trouble.unwrap_or(ProducerTrouble::GivenUp)
    }

    /// Ends it for all calls: what it holds is dropped, and every call is told.
    pub(super) fn retire(&self, trouble: ProducerTrouble) {
        note(&self.trouble, trouble);
        self.inner.purge(PurgeConfig::default().queue().inflight());
    }

    /// Ends it, without letting anybody wait for its threads.
    pub(super) fn put_away(self: Arc<Self>) {
        const PATIENCE: Duration = Duration::from_millis(20);
        let closing = thread::Builder::new().name("hapax-kafka-close".to_owned());
        let mut producer = self;
        // Where there is no thread to be had, its threads are waited for after all.
        let _ = closing.spawn(move || {
            producer.retire(ProducerTrouble::GivenUp);
            // Calls that still have it hear of its end and let it go.
            while let Err(shared) = Arc::try_unwrap(producer) {
                thread::sleep(PATIENCE);
                producer = shared;
            }
        });
    }
}

impl fmt::Debug for EventProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventProducer")
            .field("trouble", &*self.trouble.borrow())
            .finish_non_exhaustive()
    }
}

/// Hears what the producer says about itself.
pub(super) struct ProducerCallbacks {
    trouble: Arc<watch::Sender<Option<ProducerTrouble>>>,
}

impl ClientContext for ProducerCallbacks {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "heard from the Kafka producer");
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                note(&self.trouble, ProducerTrouble::Down(reason.to_owned()));
            }
            Some(RDKafkaErrorCode::Fatal | RDKafkaErrorCode::GaplessGuarantee) => {
                note(&self.trouble, ProducerTrouble::Failed(error));
            }
            Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced) => {
                note(&self.trouble, ProducerTrouble::Fenced(error));
            }
            _ => {}
        }
    }
}

/// The first trouble is the one to tell.
fn note(trouble: &watch::Sender<Option<ProducerTrouble>>, new: ProducerTrouble) {
    trouble.send_if_modified(|first| {
        let is_first = first.is_none();
        first.get_or_insert(new);
        is_first
    });
}
