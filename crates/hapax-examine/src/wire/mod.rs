//! Sends bytes, and says what came back and when. It knows no meaning.
//!
//! Requests are bytes that we hold, so that a cut at an offset is exact and duplicates can leave together.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use rustls::ClientConfig;
use thiserror::Error;

mod answer;
mod cut;
mod http2;
mod race;
mod stream;

pub(crate) use self::answer::unchunk;
pub use self::cut::{CutEnd, WireCut};
use self::{
    answer::{AnswerEnd, read_answer},
    stream::WireStream,
};
use crate::{ExamRequest, Exchange, ExchangeEnd, HttpAddress, ProbeLog, WireProtocol};

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
        let mut record = ExchangeDraft::begin(log, label, request, address);
        let mut stream = match self.connect(address, &[b"http/1.1"]).await {
            Ok(stream) => stream,
            Err(reason) => return record.failed(log, reason),
        };
        if let Err(reason) = stream.write(&record.request).await {
            return record.failed(log, reason);
        }
        record.sent = Some(log.elapsed());
        record.read(log, &mut stream, &request.method, patience).await
    }

    /// Whether HTTP/2 is spoken there.
    pub async fn speaks_http2(&self, address: &HttpAddress) -> bool {
        http2::is_spoken(self, address).await
    }

    async fn connect(
        &self,
        address: &HttpAddress,
        protocols: &[&[u8]],
    ) -> Result<WireStream, String> {
        let connecting = WireStream::connect(address, &self.tls, protocols);
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

/// An exchange that is not over.
#[derive(Debug, Clone)]
struct ExchangeDraft {
    number: u32,
    label: String,
    protocol: WireProtocol,
    request: Bytes,
    body_at: usize,
    cut: Option<WireCut>,
    began: Duration,
    sent: Option<Duration>,
    answered: Option<Duration>,
}

impl ExchangeDraft {
    fn begin(log: &ProbeLog, label: &str, request: &ExamRequest, address: &HttpAddress) -> Self {
        let bytes = request.http1(&address.authority());
        Self {
            number: log.number(),
            label: label.to_owned(),
            protocol: WireProtocol::Http1,
            request: bytes.bytes,
            body_at: bytes.body_at,
            cut: None,
            began: log.elapsed(),
            sent: None,
            answered: None,
        }
    }

    /// Reads the answer to its end.
    async fn read(
        mut self,
        log: &ProbeLog,
        stream: &mut WireStream,
        method: &str,
        patience: Duration,
    ) -> Exchange {
        let mut answered = None;
        let reading = read_answer(stream, method, || answered = Some(log.elapsed()), patience);
        let end = match reading.await {
            AnswerEnd::Whole(answer) => ExchangeEnd::Answered(answer),
            AnswerEnd::Closed(received) => ExchangeEnd::Closed { received },
            AnswerEnd::Silent(received) => ExchangeEnd::Silent { received },
            AnswerEnd::Unreadable(reason) => ExchangeEnd::Failed { reason },
        };
        self.answered = answered;
        self.end(log, end)
    }

    fn failed(self, log: &ProbeLog, reason: String) -> Exchange {
        self.end(log, ExchangeEnd::Failed { reason })
    }

    fn end(self, log: &ProbeLog, end: ExchangeEnd) -> Exchange {
        let Self { number, label, protocol, request, cut, began, sent, answered, .. } = self;
        let ended = log.elapsed();
        let exchange = Exchange {
            number,
            label,
            address: 0,
            protocol,
            request,
            cut,
            began,
            sent,
            answered,
            ended,
            end,
        };
        log.keep(&exchange);
        exchange
    }
}
