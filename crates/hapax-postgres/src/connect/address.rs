//! Where a database is, read once and looked up again for each connection.

use std::{env, fmt, fs, path::PathBuf, str::FromStr, sync::Arc};

use tokio_postgres::{Client, Config, Connection, Socket};

use super::{
    attempt::HostAttempt,
    error::{AddressError, ConnectFailure},
    parameters::Parameters,
    settings::{ClientEnvironment, ConnectSettings, ServerPlace},
    tls::{EncryptedStream, PostgresTls},
};

/// Where a PostgreSQL database is, and how to get into it: what `psql` is told, and what it looks up.
///
/// It is read from `postgres://user@host:port/database?sslmode=verify-full` or from
/// `host=… dbname=… sslmode=…`; the parameters, variables (`PGHOST`, `PGPASSWORD`, …) and files (`~/.pgpass`,
/// `~/.pg_service.conf`, `~/.postgresql/root.crt`) are those of libpq. Nothing shows a password.
///
/// ```
/// use hapax_postgres::Address;
///
/// let address: Address = "postgres://app:secret@localhost/shop?sslmode=require".parse()?;
/// assert_eq!(address.to_string(), "PostgreSQL, database shop at localhost:5432");
/// assert!(!format!("{address:?}").contains("secret"));
///
/// // A password goes nowhere where others could read it.
/// let refused = "postgres://app:secret@db.example.com/shop?sslmode=disable".parse::<Address>();
/// assert!(refused.is_err());
/// # Ok::<(), hapax_postgres::AddressError>(())
/// ```
#[derive(Clone)]
pub struct Address {
    source: AddressSource,
    shown: Arc<str>,
}

#[derive(Clone)]
enum AddressSource {
    Text(Arc<Parameters>),
    /// A file that holds it, and the database it named when it was read first.
    File {
        path: Arc<PathBuf>,
        dbname: Option<Arc<str>>,
    },
    Driver(Arc<Config>),
}

impl Address {
    /// The address in this file. It is read for every connection, so a password that is changed there is
    /// used by the next one.
    pub fn in_file(path: impl Into<PathBuf>) -> Result<Self, AddressError> {
        let path = path.into();
        let settings = resolved(&read(&path)?)?;
        let dbname = settings.driver.get_dbname().map(Arc::from);
        let shown = shown(&settings);
        Ok(Self { source: AddressSource::File { path: Arc::new(path), dbname }, shown })
    }

    /// The encryption that it asks for, for a pool of tokio-postgres connections.
    ///
    /// With the driver's [`Config`] of [`driver_config`](Self::driver_config), and for deadpool better by
    /// `manager`, which also finds the password anew and the host that takes writes.
    pub fn connector(&self) -> Result<PostgresTls, AddressError> {
        Ok(PostgresTls::new(self.settings()?.tls))
    }

    /// The hosts that it connects to over the network, without those it meets at a socket of this machine.
    pub fn hosts(&self) -> Result<Vec<String>, AddressError> {
        let settings = self.settings()?;
        Ok(settings.hosts.iter().filter_map(ServerPlace::network_host).collect())
    }

    /// What the driver has to know, with the password that is to be used now, for the first of the hosts
    /// that it names.
    pub async fn driver_config(&self) -> Result<Config, ConnectFailure> {
        let first = self.attempts().await?.into_iter().next();
        first.map(HostAttempt::into_config).ok_or_else(|| AddressError::Form.into())
    }

    /// Connects: to the first of its hosts that will do.
    pub async fn connect(
        &self,
    ) -> Result<(Client, Connection<Socket, EncryptedStream<Socket>>), ConnectFailure> {
        let mut failures = Vec::new();
        for attempt in self.attempts().await? {
            match attempt.connect().await {
                Ok(connected) => return Ok(connected),
                Err(failure) => failures.push(failure),
            }
        }
        Err(ConnectFailure::of(failures))
    }

    /// The servers to try, in order. Files are read and commands are run here.
    pub(crate) async fn attempts(&self) -> Result<Vec<HostAttempt>, ConnectFailure> {
        let mut settings = self.settings()?;
        let printed = settings.password.printed().await?;
        if settings.shuffled {
            fastrand::shuffle(&mut settings.hosts);
        }
        let attempt = |place| HostAttempt::new(&settings, place, printed.as_ref());
        settings.hosts.iter().map(attempt).collect()
    }

    fn settings(&self) -> Result<ConnectSettings, AddressError> {
        match &self.source {
            AddressSource::Text(said) => resolved(said),
            AddressSource::File { path, dbname } => {
                let settings = resolved(&read(path)?)?;
                if settings.driver.get_dbname() == dbname.as_deref() {
                    Ok(settings)
                } else {
                    Err(AddressError::OtherDatabase { path: path.as_ref().clone() })
                }
            }
            AddressSource::Driver(config) => {
                Ok(ConnectSettings::of_driver(config, &ClientEnvironment(&variable)))
            }
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let said = Parameters::parse(text)?;
        let shown = shown(&resolved(&said)?);
        Ok(Self { source: AddressSource::Text(Arc::new(said)), shown })
    }
}

impl From<&Config> for Address {
    /// What was made in code: the environment and the files of passwords are not asked.
    fn from(config: &Config) -> Self {
        let shown = shown(&ConnectSettings::of_driver(config, &ClientEnvironment(&variable)));
        Self { source: AddressSource::Driver(Arc::new(config.clone())), shown }
    }
}

impl From<Config> for Address {
    fn from(config: Config) -> Self {
        Self::from(&config)
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

impl fmt::Display for Address {
    /// The database and where it is. Never shows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

fn read(path: &PathBuf) -> Result<Parameters, AddressError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| AddressError::File { path: path.clone(), source })?;
    Parameters::parse(text.trim())
}

fn resolved(said: &Parameters) -> Result<ConnectSettings, AddressError> {
    ConnectSettings::resolve(said, &ClientEnvironment(&variable))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn shown(settings: &ConnectSettings) -> Arc<str> {
    let dbname = settings.driver.get_dbname().unwrap_or("by default");
    let places: Vec<_> = settings.hosts.iter().map(|place| place.shown()).collect();
    format!("PostgreSQL, database {dbname} at {}", places.join(" or ")).into()
}
