//! Lets everything come to an end, and reads what is left.

use std::time::Duration;

use async_nats::{
    HeaderMap,
    jetstream::{self, consumer::pull},
};
use futures_util::StreamExt;
use hapax_core::outbox::Lag;
use tokio::time::{Instant, sleep, timeout};

use super::{
    check::{ArrivedEvent, MessagingFacts},
    hunt::MessagingHunt,
    line::Line,
    log::Log,
    world::{World, connect},
    writer::{Business, SharedLedger},
};
use crate::error::CrashError;

const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);
const EFFECTS: &str = "SELECT event FROM effects";
const LETTERS: &str = "SELECT message_id FROM hapax.inbox_dead_readable";

/// Waits until every line is done; those that are not in time, and why.
pub(super) async fn settle(
    hunt: &MessagingHunt,
    world: &World,
    log: &Log,
) -> Result<Vec<String>, CrashError> {
    let until = Instant::now() + LIMIT;
    let jetstream = world.jetstream().await?;
    let mut unfinished = Vec::new();
    for line in (0..hunt.lines).map(Line) {
        loop {
            let left = left(log, &jetstream, line).await;
            match left {
                None => break,
                Some(left) if Instant::now() > until => {
                    unfinished.push(format!("{}: {left}", line.name()));
                    break;
                }
                Some(_) => sleep(PAUSE).await,
            }
        }
    }
    Ok(unfinished)
}

/// What is left to do on a line.
async fn left(log: &Log, jetstream: &jetstream::Context, line: Line) -> Option<String> {
    if let Err(error) = log.replay(line).await {
        return Some(format!("the outbox: {error}"));
    }
    match log.lag(line).await {
        Ok(Some(lag)) if is_over(&lag) => {}
        Ok(lag) => return Some(format!("{lag:?}")),
        Err(error) => return Some(format!("the outbox: {error}")),
    }
    let stream = jetstream.get_stream(line.name()).await;
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Some(format!("the stream: {error}")),
    };
    match stream.consumer_info(line.name()).await {
        Ok(info) if info.num_pending == 0 && info.num_ack_pending == 0 => None,
        Ok(info) => {
            let (pending, open) = (info.num_pending, info.num_ack_pending);
            Some(format!("{pending} messages to come, {open} not acknowledged"))
        }
        Err(error) => Some(format!("the consumer: {error}")),
    }
}

fn is_over(lag: &Lag) -> bool {
    lag.events() == 0 && lag.parked == 0
}

/// Reads what everybody knows.
pub(super) async fn gather(
    hunt: &MessagingHunt,
    world: &World,
    business: &Business,
    told: &SharedLedger,
) -> Result<MessagingFacts, CrashError> {
    let client = connect(&world.inbox).await?;
    let mut facts = MessagingFacts {
        written: business.read().await?,
        told: told.ledger().clone(),
        ..MessagingFacts::default()
    };
    for (statement, names) in [(EFFECTS, &mut facts.effects), (LETTERS, &mut facts.letters)] {
        for row in client.query(statement, &[]).await? {
            names.push(row.try_get(0)?);
        }
    }
    let jetstream = world.jetstream().await?;
    for line in (0..hunt.lines).map(Line) {
        facts.arrived.extend(arrived(&jetstream, line).await?);
    }
    Ok(facts)
}

/// Everything in the stream of a line, in its order.
async fn arrived(
    jetstream: &jetstream::Context,
    line: Line,
) -> Result<Vec<ArrivedEvent>, CrashError> {
    let stream = jetstream.get_stream(line.name()).await;
    let stream = stream.map_err(CrashError::refused("find a stream"))?;
    let last = stream.cached_info().state.messages;
    let mut arrived = Vec::new();
    if last == 0 {
        return Ok(arrived);
    }
    let reader = stream.create_consumer(pull::OrderedConfig::default()).await;
    let reader = reader.map_err(CrashError::refused("read a stream"))?;
    let messages = reader.messages().await.map_err(CrashError::refused("read a stream"))?;
    let mut messages = messages.take(usize::try_from(last).unwrap_or(usize::MAX));
    while let Some(message) = timeout(LIMIT, messages.next())
        .await
        .map_err(CrashError::refused("read a stream to its end"))?
    {
        let message = message.map_err(CrashError::refused("read a stream"))?;
        let header = |name: &str| {
            let value = message.headers.as_ref().and_then(|headers: &HeaderMap| headers.get(name));
            value.map_or_else(String::new, ToString::to_string)
        };
        let topic = message.subject.to_string();
        arrived.push(ArrivedEvent { id: header("ce-id"), topic, key: header("ce-subject") });
    }
    Ok(arrived)
}
