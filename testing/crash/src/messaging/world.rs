//! The servers, the databases and the streams of one hunt.

use std::time::Duration;

use async_nats::jetstream::{self, stream};
use hapax_services::{
    broker::{self, Broker},
    nats,
    postgres::{Mode, Server, Settings},
};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use super::line::Line;
use crate::{error::CrashError, open::DurableAddress};

/// How long the broker itself drops what it has seen: as short as may be, so that consumers see
/// what a crash repeats.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// What the effects are, and the clock that Hapax reads there. Nothing in it is unique: a second
/// effect is a second row.
const EFFECTS: &str = "
    CREATE TABLE effects (event text NOT NULL, line integer NOT NULL);
    CREATE TABLE clock_step (micros bigint NOT NULL);
    INSERT INTO clock_step VALUES (0);
    CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint + (SELECT micros FROM public.clock_step) $$";

/// Real servers of a hunt's own.
#[derive(Debug)]
pub(super) struct World {
    pub(super) home: TempDir,
    pub(super) outbox: DurableAddress,
    pub(super) inbox: String,
    pub(super) nats: String,
    servers: Servers,
}

/// What can be stopped.
#[derive(Debug)]
pub(super) struct Servers {
    postgres: Server,
    broker: Broker,
}

impl World {
    /// Starts the servers, and makes the schema and a stream for each line.
    pub(super) async fn start(sqlite: bool, lines: usize) -> Result<Self, CrashError> {
        let home = tempfile::Builder::new().prefix("hapax-crash-messaging-").tempdir();
        let home = home.map_err(CrashError::io("make a temporary directory"))?;
        let servers =
            Servers { postgres: Server::start(Settings::default())?, broker: nats::start()? };
        let (inbox, nats) = (servers.postgres.url(), servers.broker.url().to_owned());
        let outbox = match sqlite {
            true => DurableAddress::Sqlite(home.path().join("outbox.db")),
            false => DurableAddress::Postgres(inbox.clone()),
        };
        let world = Self { home, outbox, inbox, nats, servers };
        let inbox = DurableAddress::Postgres(world.inbox.clone());
        drop(inbox.open(hapax_core::Faults::default()).await?);
        world.client().await?.batch_execute(EFFECTS).await?;
        let jetstream = world.jetstream().await?;
        for line in (0..lines).map(Line) {
            let config = stream::Config {
                name: line.name(),
                subjects: vec![line.subjects()],
                duplicate_window: DUPLICATE_WINDOW,
                ..stream::Config::default()
            };
            let made = jetstream.create_stream(config).await;
            made.map_err(CrashError::refused("make a stream"))?;
        }
        Ok(world)
    }

    /// A connection to the database of the effects.
    pub(super) async fn client(&self) -> Result<Client, CrashError> {
        connect(&self.inbox).await
    }

    /// The broker, as whoever looks after it sees it.
    pub(super) async fn jetstream(&self) -> Result<jetstream::Context, CrashError> {
        let client = async_nats::connect(&self.nats).await;
        Ok(jetstream::new(client.map_err(CrashError::refused("connect to the broker"))?))
    }

    /// What can be stopped, for one at a time, and where its clock is.
    pub(super) fn servers(&mut self) -> (&mut Servers, &str) {
        (&mut self.servers, &self.inbox)
    }
}

/// A connection to this database, which ends when it is dropped.
pub(super) async fn connect(url: &str) -> Result<Client, CrashError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Servers {
    pub(super) fn restart_broker(&mut self, mode: broker::Mode) -> Result<(), CrashError> {
        Ok(self.broker.restart(mode)?)
    }

    pub(super) fn freeze_broker(&self) -> Result<(), CrashError> {
        Ok(self.broker.pause()?)
    }

    pub(super) fn thaw_broker(&self) {
        self.broker.unpause();
    }

    pub(super) fn restart_postgres(&mut self) -> Result<(), CrashError> {
        Ok(self.postgres.restart(Mode::Immediate)?)
    }
}
