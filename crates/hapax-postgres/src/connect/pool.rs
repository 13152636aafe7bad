//! Pools of a service's own connections, made as ours are.

use std::{error::Error, future::Future, pin::Pin};

use deadpool_postgres::{Connect, Manager, ManagerConfig};
use tokio::{
    io::{Empty, empty},
    task::JoinHandle,
};
use tokio_postgres::{
    Client, Config,
    config::{SslMode, SslNegotiation},
    tls::{NoTlsStream, TlsConnect},
};

use super::{address::Address, error::ConnectFailure};

impl Address {
    /// What a deadpool makes its connections with: encrypted as the address says, with the password that
    /// is right when one is made, to the host that takes writes.
    ///
    /// ```
    /// use deadpool_postgres::Pool;
    ///
    /// let address: hapax_postgres::Address =
    ///     "postgres://app@db.example.com/shop?sslrootcert=system".parse()?;
    /// let pool = Pool::builder(address.manager()).max_size(16).build()?;
    /// # drop(pool);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn manager(&self) -> Manager {
        // The address knows all that a configuration of the driver would be asked for.
        Manager::from_connect(Config::new(), self.clone(), ManagerConfig::default())
    }
}

type Connecting<'a> = Pin<
    Box<dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + 'a>,
>;

impl Connect for Address {
    fn connect(&self, _: &Config) -> Connecting<'_> {
        Box::pin(async move {
            let (client, connection) = match Self::connect(self).await {
                Ok(connected) => connected,
                Err(failure) => return in_the_drivers_words(failure).await,
            };
            let moving = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
            Ok((client, moving))
        })
    }
}

/// A pool hands errors of the driver on, which nobody else can make. One of a failed handshake can have any
/// cause, and a handshake can fail on a stream to nowhere.
async fn in_the_drivers_words(
    failure: ConnectFailure,
) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
    let mut config = Config::new();
    config.user("nobody").ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let (client, connection) = config.connect_raw(empty(), FailingHandshake(failure)).await?;
    Ok((client, tokio::spawn(async move { drop(connection) })))
}

/// A handshake that fails.
struct FailingHandshake(ConnectFailure);

impl TlsConnect<Empty> for FailingHandshake {
    type Stream = NoTlsStream;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = std::future::Ready<Result<NoTlsStream, Self::Error>>;

    fn connect(self, _: Empty) -> Self::Future {
        std::future::ready(Err(self.0.into()))
    }
}
