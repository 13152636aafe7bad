//! A consumer is killed at every place where it writes: each message has one effect all the same.

use std::{
    env,
    future::pending,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hapax_core::Faults;
use hapax_messaging::consumer::{Consumer, HandlerError, Message, Options, PLACES};
use rustix::process::{Signal, getpid, kill_process};

use super::{
    base::{Base, Postgres, Sqlite},
    queue::Queue,
    scene::{TxOf, dead, effects, hurried, incoming, name, record},
};

const MESSAGES: usize = 6;
/// How many messages share a transaction.
const BATCHES: [usize; 2] = [1, 4];
/// Says to a process that it is to be killed: the database, how many messages share a transaction, the
/// place, and how often it is passed.
const VICTIM: &str = "HAPAX_CONSUMER_VICTIM";

#[test]
fn a_consumer_killed_at_any_place_acts_on_each_message_once_in_sqlite() {
    killed_everywhere::<Sqlite>(
        "consumer::crashes::a_consumer_killed_at_any_place_acts_on_each_message_once_in_sqlite",
        &[1, 2, 3],
    );
}

#[test]
fn a_consumer_killed_at_any_place_acts_on_each_message_once_in_postgres() {
    killed_everywhere::<Postgres>(
        "consumer::crashes::a_consumer_killed_at_any_place_acts_on_each_message_once_in_postgres",
        &[1],
    );
}

fn killed_everywhere<B: Base>(test: &str, times: &[usize]) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(victim) = env::var(VICTIM) {
        let mut parts = victim.split('|');
        let [address, batch, place, nth] = [(); 4].map(|()| parts.next().unwrap().to_owned());
        let faults = killing(place, nth.parse().unwrap());
        runtime.block_on(live::<B>(B::open(&address), batch.parse().unwrap(), faults));
        panic!("it should have been killed");
    }
    for (batch, place) in BATCHES.iter().flat_map(|batch| PLACES.iter().map(move |at| (batch, at)))
    {
        // There is one dead letter, so its places are passed once.
        for nth in times.iter().filter(|nth| **nth == 1 || !place.ends_with("_letter")) {
            let base = runtime.block_on(B::create());
            let when = format!("{place} {nth}, {batch} in a transaction");
            let status = Command::new(env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env(VICTIM, format!("{}|{batch}|{place}|{nth}", base.address()))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{when}: {status}");
            runtime.block_on(async {
                live::<B>(base.inbox(), *batch, Faults::default()).await;
                let mut found = effects(&base).await;
                found.sort();
                let expected: Vec<_> = (1..MESSAGES).map(|number| format!("m-{number}")).collect();
                assert_eq!(found, expected, "{when}");
                assert_eq!(dead(&base).await, ["m-0 poison"], "{when}");
            });
        }
    }
}

/// Consumes all messages, of which the last is poison, from a broker that has heard of none before.
async fn live<B: Base>(inbox: B::Inbox, batch: usize, faults: Faults) {
    let queue = Queue::deaf(1);
    for number in (0..MESSAGES).rev() {
        let payload = if number == 0 { "poison" } else { "{}" };
        queue.push(incoming(&format!("m-{number}"), payload));
    }
    let options = Options { concurrency: 2, batch, ..hurried() };
    let consumer = Consumer::new(name(), inbox, act::<B>).options(options).faults(faults);
    consumer.run(queue, pending()).await.unwrap();
}

async fn act<B: Base>(tx: TxOf<B>, message: Arc<Message>) -> Result<(), HandlerError> {
    if message.payload == "poison" {
        return Err("it explodes".into());
    }
    record::<B>(tx, message).await
}

/// Kills this process when a place is passed for the nth time.
fn killing(place: String, nth: usize) -> Faults {
    let passed = AtomicUsize::new(0);
    Faults::new(move |at| {
        if at == place && passed.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        Ok(())
    })
}
