//! A process that asks for many operations at once on a real store, until it dies.

mod caller;
mod fleeting;
pub(crate) mod hand;
mod orders;

use std::{
    io::{self, Write},
    process, thread,
    time::Duration,
};

use hapax_core::{Scope, Store};
use tokio::runtime;

pub use self::orders::{Broken, Orders};
use crate::{error::CrashError, open::Address, place::Doom};

/// What a victim prints once it is at work.
pub const READY: &str = "ready";

/// Works as ordered. Returns when all operations are settled or, if told to linger, when time is
/// up; and not at all where it is to die.
pub fn run(orders: &Orders) -> Result<(), CrashError> {
    let limit = Duration::from_millis(orders.limit_ms);
    thread::spawn(move || {
        // Whoever waits for this process must not wait for a deadlock.
        thread::sleep(limit + OVERTIME);
        process::abort();
    });
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(CrashError::io("start a runtime"))?;
    let doom = Doom::new(orders.die_at.clone());
    let worked = runtime.block_on(async {
        match &orders.store {
            Address::Sqlite(path) => {
                work(Address::sqlite(path, doom.faults())?, orders, doom, limit).await
            }
            Address::Postgres(url) => {
                work(Address::postgres(url, doom.faults()).await?, orders, doom, limit).await
            }
        }
    });
    runtime.shutdown_background();
    worked
}

const OVERTIME: Duration = Duration::from_secs(20);

async fn work<S: Store>(
    store: S,
    orders: &Orders,
    doom: Doom,
    limit: Duration,
) -> Result<(), CrashError> {
    let scope = Scope::parse(&orders.scope).map_err(CrashError::name)?;
    let crew = caller::Crew::new(store, orders, scope, doom)?;
    let say = || writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    say().map_err(CrashError::io("say that it is ready"))?;
    crew.work(limit).await
}
