//! A PostgreSQL server, its schema and what runs on it.

mod capacity;
mod clock;
mod durability;
mod retention;
mod rights;
mod schema;
mod server;
mod session;
mod shipped_schema;
mod traffic;
mod upkeep;

use std::time::Duration;

use hapax::{
    StoreError,
    incarnation::IncarnationReading,
    operator::Operator,
    postgres::{self, Address, OpenError},
};
use indicatif::ProgressBar;
use tokio_postgres::{Client, Error};

use super::{
    Expectations,
    diagnosis::{Diagnosis, unseen},
    past,
};
use crate::{
    sentence,
    store::{Access, OpenStore, StoreAddress},
};

/// Connections of one store: two that write, one each that reads, tidies and listens.
pub(super) const STORE_CONNECTIONS: u32 = 5;
/// Connections of the outbox that the relays of a gateway share.
pub(super) const OUTBOX_CONNECTIONS: u32 = 3;
/// How long a server may take to let us in.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long it may take to be looked at as the store does, which connects twice and compares.
const ENTER_MAX: Duration = Duration::from_secs(30);

/// Everything there is to say about this server.
pub(super) async fn examine(
    address: &Address,
    expected: Expectations,
    progress: &ProgressBar,
) -> Vec<Diagnosis> {
    progress.set_message("the connection");
    let mut found = Vec::new();
    let Some(client) = enter(address, &mut found).await else { return found };
    progress.set_message("the server");
    found.extend(server::examine(&client).await);
    if let Err(error) = client.batch_execute(session::GUARD).await {
        found.push(unseen("server", &sentence(&error)));
        return found;
    }
    progress.set_message("durability");
    found.extend(durability::examine(&client).await);
    progress.set_message("the clock");
    found.extend(clock::examine(&client).await);
    progress.set_message("the schema");
    found.extend(schema::examine(&client).await);
    found.extend(rights::examine(&client).await);
    progress.set_message("room and upkeep");
    found.extend(capacity::examine(&client, expected.connections).await);
    found.extend(upkeep::examine(&client).await);
    found.extend(traffic::examine(&client).await);
    progress.set_message("stored keys");
    found.extend(retention::examine(&client, expected.client_retries_for).await);
    progress.set_message("its past");
    found.extend(past::examine(past(address).await, expected));
    found
}

/// Enters as the store does, which finds poolers and servers that only look like PostgreSQL, and then
/// with a session of our own. `None` where nothing more can be asked; `found` then says why.
async fn enter(address: &Address, found: &mut Vec<Diagnosis>) -> Option<Client> {
    let entered = tokio::time::timeout(ENTER_MAX, postgres::schema_version(address)).await;
    let Ok(entered) = entered else {
        found.push(server::silence(ENTER_MAX));
        return None;
    };
    found.push(server::entry(entered.as_ref().map(|_| ())));
    if let Err(OpenError::Connect(_) | OpenError::NoDatabase(_) | OpenError::Pooled(_)) = entered {
        return None;
    }
    let connected = tokio::time::timeout(CONNECT_MAX, connect(address)).await;
    match connected {
        Ok(Ok(client)) => Some(client),
        Ok(Err(error)) => {
            found.push(unseen("server", &sentence(&error)));
            None
        }
        Err(_) => {
            found.push(unseen("server", "it did not let us in a second time"));
            None
        }
    }
}

/// What the store says of its past.
async fn past(address: &Address) -> Result<IncarnationReading, StoreError> {
    let address = StoreAddress::Postgres(address.clone());
    let opened = OpenStore::open(&address, Access::Look).await;
    Operator::new(opened.map_err(StoreError::unavailable)?.into_dyn()).incarnation().await
}

async fn connect(address: &Address) -> Result<Client, OpenError> {
    let (client, connection) = address.connect().await?;
    tokio::spawn(connection);
    let named = client.batch_execute("SET application_name = 'hapax doctor'").await;
    named.map_err(OpenError::Unusable)?;
    Ok(client)
}

/// What each check of an area makes of its facts, or why there are none.
fn judged<F>(
    area: &'static str,
    facts: Result<F, Error>,
    checks: &[fn(&F) -> Diagnosis],
) -> Vec<Diagnosis> {
    match facts {
        Ok(facts) => checks.iter().map(|check| check(&facts)).collect(),
        Err(error) => vec![unseen(area, &sentence(&error))],
    }
}
