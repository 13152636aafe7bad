//! Orders that are mailed about once: a transaction, an outbox, Kafka, and a mailer.
//!
//! [`place`] writes an order and its event in one transaction. [`relay`] sends events to Kafka.
//! [`mail`] takes them from there and writes a mail, in one transaction with the memory of the message.
//! Each may be killed at any time, and started again.

use std::{error::Error, sync::Arc};

use deadpool_postgres::{Manager, Pool};
use hapax::{
    Scope,
    messaging::{
        consumer::{Consumer, HandlerError, Message, Tx},
        relay::Relay,
        sink,
        source::kafka::{Kafka, KafkaOptions},
    },
    outbox::{Destination, Topics},
    postgres::{
        Outbox, OutboxOptions,
        transaction::{
            ForMessages,
            deadpool::{Database, Transaction},
        },
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_postgres::{Config, NoTls};

/// What both services need beside the schema of Hapax; they share a database here, and need not.
pub const TABLES: &str = include_str!("schema.sql");

/// What an order's event is called; Kafka's topic is the same.
const PLACED: &str = "orders.placed";

/// Whatever went wrong.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Places {
    /// The database.
    pub database: Config,
    /// Kafka's brokers: `host:port`, more of them after commas.
    pub brokers: String,
    /// What stands before the topic's name, so that several may try this on one cluster.
    pub prefix: String,
}

impl Places {
    /// Connections to the database.
    ///
    /// # Errors
    ///
    /// If none can be made.
    pub fn pool(&self) -> Result<Pool, Failure> {
        Ok(Pool::builder(Manager::new(self.database.clone(), NoTls)).max_size(10).build()?)
    }
}

/// Places an order: the row and the event are one commit.
///
/// # Errors
///
/// If it is not known to be committed.
pub async fn place(pool: &Pool, number: &str, customer: &str) -> Result<(), Failure> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    let insert = "INSERT INTO orders (number, customer) VALUES ($1, $2)";
    transaction.execute(insert, &[&number, &customer]).await?;
    let event = json!({ "order": number, "customer": customer }).to_string();
    let emit = "SELECT hapax.emit($1, $2, $3::bytea)";
    transaction.execute(emit, &[&PLACED, &number, &event.as_bytes()]).await?;
    Ok(transaction.commit().await?)
}

/// Sends events to Kafka until it is stopped; `hapax relay --to kafka://...` does the same.
///
/// # Errors
///
/// If the database cannot be used.
pub async fn relay(places: &Places, stop: watch::Receiver<bool>) -> Result<(), Failure> {
    let outbox = Outbox::connect(&places.database, OutboxOptions::default()).await?;
    let topic_prefix = places.prefix.clone();
    let options = sink::KafkaOptions { topic_prefix, ..sink::KafkaOptions::default() };
    let kafka = sink::Kafka::new(&places.brokers, options)?;
    let destination = Destination::new("kafka", Topics::parse(["orders.*"])?)?;
    Ok(Relay::new(outbox, destination, kafka).run(stop).await?)
}

/// Mails about orders until it is stopped.
///
/// # Errors
///
/// If the database or Kafka cannot be used.
pub async fn mail(places: &Places, mut stop: watch::Receiver<bool>) -> Result<(), Failure> {
    let topic = format!("{}{PLACED}", places.prefix);
    let mut options = KafkaOptions::new(&places.brokers, "mailer", topic);
    // A mailer that was killed is missed by its group after so long, and another one goes on.
    options.settings.insert("session.timeout.ms".to_owned(), "6000".to_owned());
    let source = Kafka::open(&options).await?;
    let database = Database::new(places.pool()?);
    let mailer = Consumer::new(Scope::parse("mailer")?, database, write_mail);
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    Ok(mailer.run(source, stopped).await?)
}

/// Nothing here knows that messages come twice.
async fn write_mail(
    tx: Tx<Transaction<ForMessages>>,
    message: Arc<Message>,
) -> Result<(), HandlerError> {
    let order: Value = serde_json::from_slice(&message.payload)?;
    let (Some(number), Some(customer)) = (order["order"].as_str(), order["customer"].as_str())
    else {
        return Err(HandlerError::failed("an order without number or customer"));
    };
    let insert = "INSERT INTO mails (order_number, customer) VALUES ($1, $2)";
    tx.execute(insert, &[&number, &customer]).await?;
    Ok(())
}
