//! A round as one transaction: all of it is visible to those who read what is committed, or nothing.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rdkafka::{
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    producer::Producer,
};
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    ProducerTrouble,
    producer::EventProducer,
    round::{ProducedFate, Round},
};

/// How long one call into the library may take: it is made again while there is time.
const STEP: Duration = Duration::from_secs(2);

/// Begins a transaction, carries the round, and commits if all of it was taken; otherwise nothing
/// was.
pub(super) async fn carry(
    producer: &Arc<EventProducer>,
    round: Round<'_>,
) -> Result<Vec<ProducedFate>, ProducerTrouble> {
    let mut open = Open { producer, over: false };
    let end = round.end;
    let carried = async {
        begin(producer, end).await?;
        let mut fates = round.carry().await;
        if fates.iter().all(|fate| matches!(fate, ProducedFate::Taken)) {
            step(producer, end, |producer| producer.inner.commit_transaction(STEP)).await?;
        } else if let Some(trouble) = producer.trouble() {
            return Err(trouble);
        } else {
            step(producer, end, |producer| producer.inner.abort_transaction(STEP)).await?;
            let taken = fates.iter_mut().filter(|fate| matches!(fate, ProducedFate::Taken));
            taken.for_each(|fate| *fate = ProducedFate::Unsent);
        }
        Ok(fates)
    };
    let carried = carried.await;
    open.over = carried.is_ok();
    carried.map_err(|trouble| producer.trouble().unwrap_or(trouble))
}

async fn begin(producer: &Arc<EventProducer>, end: Instant) -> Result<(), ProducerTrouble> {
    if !producer.ready.load(Ordering::Relaxed) {
        step(producer, end, |producer| producer.inner.init_transactions(STEP)).await?;
        producer.ready.store(true, Ordering::Relaxed);
    }
    producer.inner.begin_transaction().map_err(trouble)
}

/// A step that waits for the brokers, in a thread that may, again and again until it is done or the
/// time is over.
async fn step(
    producer: &Arc<EventProducer>,
    end: Instant,
    work: impl Fn(&EventProducer) -> KafkaResult<()> + Send + Clone + 'static,
) -> Result<(), ProducerTrouble> {
    loop {
        let (producer, work) = (Arc::clone(producer), work.clone());
        let Ok(done) = spawn_blocking(move || work(&producer)).await else {
            return Err(ProducerTrouble::GivenUp);
        };
        match done {
            Ok(()) => return Ok(()),
            Err(KafkaError::Transaction(error)) if error.is_retriable() => {
                if Instant::now() >= end {
                    return Err(ProducerTrouble::Silent);
                }
            }
            Err(error) => return Err(trouble(error)),
        }
    }
}

fn trouble(error: KafkaError) -> ProducerTrouble {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced) => {
            ProducerTrouble::Fenced(error)
        }
        _ => ProducerTrouble::Failed(error),
    }
}

/// A transaction under way. Dropped before it is over, it takes its producer with it: the brokers
/// abort it when the next one begins.
struct Open<'a> {
    producer: &'a EventProducer,
    over: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.producer.retire(ProducerTrouble::GivenUp);
        }
    }
}
