//! Sends bytes, and says what came back and when. It knows no meaning.
//!
//! Requests are bytes that we hold, so that a cut at an offset is exact and duplicates can leave together.

use std::{io, sync::Arc, time::Duration};

use rustls::ClientConfig;
use thiserror::Error;

mod answer;
mod cut;
mod draft;
mod held_output;
mod http2;
mod open;
mod pipeline;
mod proxy;
mod race;
mod send_queue;
mod stream;

pub(crate) use self::answer::unchunk;
pub use self::cut::{CutEnd, WireCut};
use self::stream::{ConnectOptions, WireStream};
pub(crate) use self::{
    draft::AddressedRequest,
    open::{BrokenExchange, OpenRequest, Receiving},
    proxy::{ProxyFault, ResendingProxy},
    race::RacedExchanges,
};
use crate::{ExamRequest, Exchange, HttpAddress, ProbeLog};

/// Sends requests.
#[derive(Debug, Clone)]
pub struct Wire {
    tls: Arc<ClientConfig>,
    connect_patience: Duration,
}

/// Why the wire cannot be used.
#[derive(Debug, Error)]
pub enum WireError {
    /// The certificates that servers are verified by.
    #[error("no certificates to verify servers by")]
    Roots,
    /// The settings of TLS.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

impl Wire {
    /// One that trusts what this machine trusts, and these certificates.
    pub fn new(trusted: &[rustls::pki_types::CertificateDer<'static>]) -> Result<Self, WireError> {
        Ok(Self { tls: stream::tls(trusted)?, connect_patience: Duration::from_secs(5) })
    }

    /// Sends a request on a connection of its own and waits so long for its answer.
    pub async fn ask(
        &self,
        log: &ProbeLog,
        label: &str,
        address: &HttpAddress,
        request: &ExamRequest,
        patience: Duration,
    ) -> Exchange {
        let addressed = AddressedRequest { address, index: 0, request };
        self.ask_at(log, label, addressed, patience).await
    }

    /// The same, at any of the API's addresses.
    pub(crate) async fn ask_at(
        &self,
        log: &ProbeLog,
        label: &str,
        addressed: AddressedRequest<'_>,
        patience: Duration,
    ) -> Exchange {
        match self.send(log, label, addressed, Receiving::Ordinary).await {
            Ok(sent) => sent.read(log, patience).await,
            Err(failed) => failed,
        }
    }

    async fn connect(
        &self,
        address: &HttpAddress,
        options: ConnectOptions<'_>,
    ) -> Result<WireStream, String> {
        let connecting = WireStream::connect(address, &self.tls, options);
        match tokio::time::timeout(self.connect_patience, connecting).await {
            Ok(connected) => connected.map_err(|error| unreached(address, &error)),
            Err(_) => Err(format!("{address} was not reached within {:?}", self.connect_patience)),
        }
    }
}

/// Why there is no connection: it makes a difference to whoever has to do something about it.
fn unreached(address: &HttpAddress, error: &io::Error) -> String {
    let is_about_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
        || address.tls && error.kind() == io::ErrorKind::UnexpectedEof;
    if is_about_tls {
        format!("TLS with {address} failed: {error}")
    } else {
        format!("{address} was not reached: {error}")
    }
}
