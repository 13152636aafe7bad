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
    Trouble,
    line::Line,
    round::{Fate, Round},
};

/// How long one call into the library may take: it is made again while there is time.
const STEP: Duration = Duration::from_secs(2);

/// Begins a transaction, carries the round, and commits if all of it was taken; otherwise nothing
/// was.
pub(super) async fn carry(line: &Arc<Line>, round: Round<'_>) -> Result<Vec<Fate>, Trouble> {
    let mut open = Open { line, over: false };
    let end = round.end;
    let carried = async {
        begin(line, end).await?;
        let mut fates = round.carry().await;
        if fates.iter().all(|fate| matches!(fate, Fate::Taken)) {
            step(line, end, |line| line.producer.commit_transaction(STEP)).await?;
        } else if let Some(trouble) = line.trouble() {
            return Err(trouble);
        } else {
            step(line, end, |line| line.producer.abort_transaction(STEP)).await?;
            let taken = fates.iter_mut().filter(|fate| matches!(fate, Fate::Taken));
            taken.for_each(|fate| *fate = Fate::Unsent);
        }
        Ok(fates)
    };
    let carried = carried.await;
    open.over = carried.is_ok();
    carried.map_err(|trouble| line.trouble().unwrap_or(trouble))
}

async fn begin(line: &Arc<Line>, end: Instant) -> Result<(), Trouble> {
    if !line.ready.load(Ordering::Relaxed) {
        step(line, end, |line| line.producer.init_transactions(STEP)).await?;
        line.ready.store(true, Ordering::Relaxed);
    }
    line.producer.begin_transaction().map_err(trouble)
}

/// A step that waits for the brokers, in a thread that may, again and again until it is done or the
/// time is over.
async fn step(
    line: &Arc<Line>,
    end: Instant,
    work: impl Fn(&Line) -> KafkaResult<()> + Send + Clone + 'static,
) -> Result<(), Trouble> {
    loop {
        let (line, work) = (Arc::clone(line), work.clone());
        let Ok(done) = spawn_blocking(move || work(&line)).await else {
            return Err(Trouble::GivenUp);
        };
        match done {
            Ok(()) => return Ok(()),
            Err(KafkaError::Transaction(error)) if error.is_retriable() => {
                if Instant::now() >= end {
                    return Err(Trouble::Silent);
                }
            }
            Err(error) => return Err(trouble(error)),
        }
    }
}

fn trouble(error: KafkaError) -> Trouble {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced) => Trouble::Fenced(error),
        _ => Trouble::Failed(error),
    }
}

/// A transaction under way. Dropped before it is over, it takes its line with it: the brokers abort
/// it when the next one begins.
struct Open<'a> {
    line: &'a Line,
    over: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.line.retire(Trouble::GivenUp);
        }
    }
}
