//! A process that sends events from an outbox to a broker, until it dies.

use std::time::Duration;

use hapax_core::{
    Timestamp,
    outbox::OutboxLog,
    retry::{Backoff, Jitter, Schedule},
};
use hapax_engine::wall_clock;
use hapax_messaging::{
    relay::{OnFailure, Relay, RelayOptions},
    sink::Nats,
};
use hapax_sqlite::Clock;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    args::{MessagingMistake, MessagingVictimArgs},
    watched::{SinkManners, WatchedOutbox, WatchedSink},
};
use crate::{
    error::CrashError,
    open::DurableAddress,
    place::Doom,
    victim::{live, say_ready},
};

/// How long a relay that died keeps its lanes: as short as may be.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// Within which the broker answers, or is taken to be down.
const WITHIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a database may take to come back.
const PATIENCE: Duration = Duration::from_secs(25);
/// When a clock is stepped, after a relay has taken its lanes by the right one.
const STEP_AFTER: Duration = Duration::from_millis(150);

/// Works as ordered: returns when its time is up, and not at all if it is to die.
pub fn run(args: &MessagingVictimArgs) -> Result<(), CrashError> {
    args.abort_when_overdue();
    live(async {
        match &args.outbox {
            DurableAddress::Sqlite(path) => {
                let clock = clock(args.clock_step_ms);
                let options = hapax_sqlite::Options { clock, ..hapax_sqlite::Options::default() };
                let opened = hapax_sqlite::Store::open(path, options);
                work(opened.map_err(CrashError::refused("open the outbox"))?, args).await
            }
            DurableAddress::Postgres(url) => work(postgres(url).await?, args).await,
        }
    })
}

/// The outbox in this database, however often its server has to be asked.
pub(super) async fn postgres(url: &str) -> Result<hapax_postgres::Outbox, CrashError> {
    let config: tokio_postgres::Config = url.parse()?;
    let options = hapax_postgres::OutboxOptions {
        migrate: false,
        answer_timeout: Duration::from_secs(5),
        ..hapax_postgres::OutboxOptions::default()
    };
    let asking = async {
        loop {
            match hapax_postgres::Outbox::connect(&config, options.clone()).await {
                Ok(outbox) => return outbox,
                // It may be starting again; the limit tells.
                Err(_) => sleep(PAUSE).await,
            }
        }
    };
    timeout(PATIENCE, asking).await.map_err(CrashError::refused("open the outbox in time"))
}

async fn work<O: OutboxLog>(outbox: O, args: &MessagingVictimArgs) -> Result<(), CrashError> {
    let doom = Doom::new(args.die_at.clone());
    let hasty = args.broken == Some(MessagingMistake::AckBeforeSend);
    let manners = SinkManners { choosy: args.choosy, hasty };
    let sink = WatchedSink::new(Nats::to(&args.nats).within(WITHIN), doom.clone(), manners);
    let outbox = WatchedOutbox::new(outbox, doom);
    let relay = Relay::new(outbox, args.line().destination()?, sink).options(options()?);
    let (stop, stopped) = watch::channel(false);
    let relay = tokio::spawn(relay.run(stopped));
    say_ready()?;
    sleep(args.work()).await;
    // It ends by itself only where something is wrong, which is told below.
    let _ = stop.send(true);
    let ended = relay.await.map_err(CrashError::refused("relay"))?;
    ended.map_err(CrashError::refused("relay"))
}

/// As impatient as may be: many die in a minute.
fn options() -> Result<RelayOptions, CrashError> {
    let (base, cap) = (Duration::from_millis(20), Duration::from_millis(200));
    let backoff = Backoff { jitter: Jitter::Equal, base, cap };
    let schedule = Schedule::new(backoff, 10).map_err(CrashError::refused("make a schedule"))?;
    Ok(RelayOptions {
        on_failure: OnFailure::ParkTail,
        schedule,
        refusals_max: 1,
        pipes: 4,
        batch: 40,
        lease: LEASE,
        poll_max: Duration::from_millis(100),
        acknowledge_every: Duration::from_millis(20),
        retire_every: Duration::from_millis(200),
        grace: Duration::from_secs(1),
        ..RelayOptions::default()
    })
}

/// The system's clock, and from some moment on one that is so many milliseconds off.
#[expect(clippy::disallowed_methods, reason = "a process of its own has a clock of its own")]
fn clock(step_ms: i64) -> Clock {
    let begun = std::time::Instant::now();
    let step = Duration::from_millis(step_ms.unsigned_abs());
    Clock::new(move || {
        let now = Timestamp::from(wall_clock());
        match step_ms {
            _ if begun.elapsed() < STEP_AFTER => now,
            0.. => now.plus(step),
            i64::MIN..0 => now.minus(step),
        }
    })
}
