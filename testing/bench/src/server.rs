//! The PostgreSQL server that is measured, and a fresh database on it for each measurement.

use hapax_services::{
    ServiceError,
    certificates::Authority,
    postgres::{Server as OwnServer, Settings},
};
use tokio_postgres::Config;

use super::{
    arms::postgres_baseline::connect, error::BenchError, machine::Fact, plan::PostgresChoice,
    sample,
};

pub(super) struct BenchServer {
    config: Config,
    own: Option<OwnServer>,
}

impl BenchServer {
    /// The one that was asked for, where there must be one.
    pub(super) fn needed(postgres: &PostgresChoice) -> Result<Self, BenchError> {
        match postgres {
            PostgresChoice::Given(config) => Ok(Self::given((**config).clone())),
            PostgresChoice::Own => Self::start().map_err(BenchError::NoServer),
            PostgresChoice::None => Err(BenchError::OnlyPostgres),
        }
    }

    /// Starts a server in the temporary directory, which is stopped and removed in the end.
    pub(super) fn start() -> Result<Self, Unstarted> {
        Self::start_with(Settings::default())
    }

    /// One that takes encrypted connections too: the one that was asked for, if it does, or a server
    /// of its own.
    pub(super) fn with_tls(postgres: &PostgresChoice) -> Result<Self, BenchError> {
        match postgres {
            PostgresChoice::Given(config) => {
                let server = Self::given((**config).clone());
                let ssl = sample::workers()?.block_on(server.setting("ssl"))?;
                if ssl == "on" { Ok(server) } else { Err(BenchError::NoTls) }
            }
            PostgresChoice::Own => Self::start_certified().map_err(BenchError::NoServer),
            PostgresChoice::None => Err(BenchError::OnlyPostgres),
        }
    }

    fn start_certified() -> Result<Self, Unstarted> {
        let certified = Authority::new("bench")?.server(&["127.0.0.1"])?;
        Self::start_with(Settings {
            config: vec!["ssl=on".to_owned()],
            files: vec![("server.crt", certified.certificate), ("server.key", certified.key)],
            ..Settings::default()
        })
    }

    fn start_with(settings: Settings) -> Result<Self, Unstarted> {
        let own = OwnServer::start(settings)?;
        let config = own.url().parse()?;
        Ok(Self { config, own: Some(own) })
    }

    pub(super) fn given(config: Config) -> Self {
        Self { config, own: None }
    }

    /// The first process of a server we started; nothing is known of others.
    pub(super) fn pid(&self) -> Option<u32> {
        self.own.as_ref()?.pid()
    }

    /// Where a server we started is; nothing is known of others.
    pub(super) fn url(&self) -> Option<String> {
        self.own.as_ref().map(OwnServer::url)
    }

    /// A database with nothing in it.
    pub(super) async fn create(&self, name: &str) -> Result<Config, BenchError> {
        self.remove(name).await?;
        let statement = format!("CREATE DATABASE {}", database_name(name));
        connect(&self.config).await?.batch_execute(&statement).await?;
        Ok(self.database(name))
    }

    /// How a database is reached.
    pub(super) fn database(&self, name: &str) -> Config {
        let mut config = self.config.clone();
        config.dbname(database_name(name));
        config
    }

    /// Removes the database, whoever is still connected to it.
    pub(super) async fn remove(&self, name: &str) -> Result<(), BenchError> {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database_name(name));
        Ok(connect(&self.config).await?.batch_execute(&statement).await?)
    }

    /// How many bytes of log were ever written.
    pub(super) async fn log_bytes(&self) -> Result<u64, BenchError> {
        let ask = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        let position: i64 = connect(&self.config).await?.query_one(ask, &[]).await?.try_get(0)?;
        Ok(u64::try_from(position).unwrap_or(0))
    }

    async fn setting(&self, name: &str) -> Result<String, BenchError> {
        let ask = "SELECT current_setting($1)";
        Ok(connect(&self.config).await?.query_one(ask, &[&name]).await?.try_get(0)?)
    }

    pub(super) async fn facts(&self) -> Result<Vec<Fact>, BenchError> {
        let mut facts = Vec::new();
        for (name, setting) in [
            ("PostgreSQL", "server_version"),
            ("its fsync", "fsync"),
            ("its synchronous_commit", "synchronous_commit"),
            ("its full_page_writes", "full_page_writes"),
        ] {
            facts.push((name, self.setting(setting).await?));
        }
        Ok(facts)
    }
}

/// The name of a database that another run on the same server does not take.
pub(super) fn database_name(name: &str) -> String {
    format!("{name}_{}", std::process::id())
}

/// Why no server of our own could be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unstarted {
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("its address is not understood")]
    Address(#[from] tokio_postgres::Error),
}
