//! A payment of several effects, each of them once: charge, record, tell, mail.
//!
//! Read in this order:
//!
//! - `pay`: what a payment is, step by step;
//! - `provider`, `books`, `mail`: the three places its effects happen in, and why none of them
//!   doubles;
//! - `order`, `http`: the request that brings it, and every answer to it;
//! - `settings`: what can be set.

mod books;
mod http;
mod mail;
mod order;
mod pay;
mod provider;
mod settings;

use std::{error::Error, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, Pool};
use hapax::{
    Engine, Options, Policy, Recovery, Workflows,
    postgres::{self, Store},
};
use hapax_core::Faults;
use tokio::net::TcpListener;
use tokio_postgres::{Config, NoTls};

pub use self::settings::Settings;
use self::{books::Books, http::Front, mail::Mail, pay::Payments, provider::Provider};

/// What the service needs beside the schema of Hapax.
const TABLES: &str = include_str!("schema.sql");

/// Serves payments until it is killed, which may be at any time.
///
/// `faults` is asked at every place that writes; tests give one that kills the process there.
///
/// # Errors
///
/// If the database cannot be reached, or the address is taken.
#[expect(clippy::print_stdout, reason = "whoever started it waits for this line")]
pub async fn serve(settings: Settings, faults: Faults) -> Result<(), Box<dyn Error + Send + Sync>> {
    let config: Config = settings.database.parse()?;
    let options = postgres::Options { faults: faults.clone(), ..postgres::Options::default() };
    let store = Store::connect(&config, options).await?;
    let pool = Pool::builder(Manager::new(config, NoTls)).max_size(16).build()?;
    pool.get().await?.batch_execute(TABLES).await?;

    let books = Books::new(pool.clone(), faults.clone());
    let payments = Arc::new(Payments {
        provider: Provider::new(&settings, faults.clone()),
        books: books.clone(),
        mail: Mail::new(pool, settings.mails, faults.clone()),
    });
    let lease = Duration::from_millis(settings.lease_ms);
    let retention = Policy::default().retention();
    let policy = Policy::new(lease, retention, Recovery::Resend)?;
    let workflows = Workflows::new().on(http::SCOPE, policy, move |run| {
        let payments = Arc::clone(&payments);
        async move { payments.pay(&run).await }
    });
    let options = Options {
        finisher: Some(workflows.finisher()),
        sweep_every: Duration::from_millis(settings.sweep_ms),
        ..Options::default()
    };
    let engine = Engine::start(store, options);

    let listener = TcpListener::bind(settings.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, Front { engine, workflows, books, faults }.router()).await?;
    Ok(())
}
