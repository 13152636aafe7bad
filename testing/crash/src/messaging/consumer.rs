//! A process that acts on messages in transactions of a database, until it dies.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Manager, Pool};
use hapax_core::{
    inbox::Message,
    retry::{Backoff, Jitter, Schedule},
};
use hapax_messaging::{
    consumer::{Consumer, HandlerError, Options, RunError, Tx},
    source::nats::{Nats, NatsOptions},
};
use hapax_postgres::transaction::{
    ForMessages,
    deadpool::{Database, Transaction},
};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::NoTls;

use super::{
    args::{MessagingMistake, MessagingVictimArgs},
    watched::WatchedSource,
    world::connect,
    writer::POISONED,
};
use crate::{
    error::CrashError,
    place::Doom,
    victim::{live, say_ready},
};

/// How long the broker waits for a word about a message before it delivers it again.
const ACK_WAIT: Duration = Duration::from_secs(1);
const ACT: &str = "INSERT INTO effects (event, line) VALUES ($1, $2)";
const CONNECTIONS: usize = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// Works as ordered: returns when its time is up, and not at all if it is to die.
pub fn run(args: &MessagingVictimArgs) -> Result<(), CrashError> {
    args.abort_when_overdue();
    live(work(args))
}

async fn work(args: &MessagingVictimArgs) -> Result<(), CrashError> {
    let until = Instant::now() + args.work();
    let hand = EffectHandler {
        doom: Doom::new(args.die_at.clone()),
        line: i32::try_from(args.line).unwrap_or(i32::MAX),
        outside: (args.broken == Some(MessagingMistake::ActOutside)).then(|| args.inbox.clone()),
    };
    let config: tokio_postgres::Config = args.inbox.parse()?;
    let pool = Pool::builder(Manager::new(config, NoTls)).max_size(CONNECTIONS).build();
    let database = Database::new(pool.map_err(CrashError::refused("make a pool"))?);
    let mut told = false;
    while Instant::now() < until {
        let source = NatsOptions { ack_wait: ACK_WAIT, ..stream(args) };
        let Ok(source) = Nats::open(&args.nats, &source).await else {
            // The broker may be starting again; the time is limited.
            sleep(PAUSE).await;
            continue;
        };
        let hasty = args.broken == Some(MessagingMistake::AckBeforeCommit);
        let source = WatchedSource::new(source, hand.doom.clone(), hasty);
        if !told {
            say_ready()?;
            told = true;
        }
        let hand_too = hand.clone();
        let handler = move |tx, message| hand_too.clone().act(tx, message);
        let consumer = Consumer::new(args.line().consumer()?, database.clone(), handler);
        let consumer = consumer.options(options(args)?).faults(hand.doom.faults());
        match Box::pin(consumer.run(source, sleep_until(until))).await {
            // As a supervisor would: it is started again.
            Ok(()) | Err(RunError::Source(_) | RunError::Store(_)) => sleep(PAUSE).await,
            Err(error) => return Err(CrashError::refused("consume")(error)),
        }
    }
    Ok(())
}

fn stream(args: &MessagingVictimArgs) -> NatsOptions {
    NatsOptions::new(args.line().name(), args.line().name())
}

/// As impatient as may be: many die in a minute.
fn options(args: &MessagingVictimArgs) -> Result<Options, CrashError> {
    let (base, cap) = (Duration::from_millis(20), Duration::from_millis(100));
    let backoff = Backoff { jitter: Jitter::Equal, base, cap };
    Ok(Options {
        concurrency: 4,
        batch: args.batch,
        timeout: Duration::from_secs(5),
        attempts: Schedule::new(backoff, 5).map_err(CrashError::refused("make a schedule"))?,
        busy_pause: Duration::from_millis(100),
        outage_pause: Duration::from_millis(200),
        heartbeat: Duration::from_millis(300),
        patrol: Duration::from_secs(1),
        ..Options::default()
    })
}

/// What a victim does with a message.
#[derive(Debug, Clone)]
struct EffectHandler {
    doom: Doom,
    line: i32,
    /// Where it acts if not in the transaction of the record, which is wrong.
    outside: Option<String>,
}

impl EffectHandler {
    async fn act(
        self,
        tx: Tx<Transaction<ForMessages>>,
        message: Arc<Message>,
    ) -> Result<(), HandlerError> {
        let event = message.id.as_str();
        self.doom.pass("effect.before");
        match &self.outside {
            None => tx.execute(ACT, &[&event, &self.line]).await?,
            Some(url) => connect(url).await?.execute(ACT, &[&event, &self.line]).await?,
        };
        self.doom.pass("effect.after");
        if message.payload == POISONED.as_bytes() {
            return Err("nobody can act on this".into());
        }
        Ok(())
    }
}
