//! A request that is on its way, and what can be done with it then.

use std::{io, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::{
    CutEnd, Wire, WireCut,
    answer::{AnswerEnd, read_answer},
    draft::{AddressedRequest, ExchangeDraft, ended},
    send_queue::drain,
    stream::{ConnectOptions, WireStream},
};
use crate::{Exchange, ExchangeEnd, ProbeLog};

/// So little that most of a long answer stays with the server.
const SMALL_RECEIVE_BYTES: u32 = 4 * 1024;

/// A request on a connection of its own, of which the last byte is ours until it is released.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    draft: ExchangeDraft,
    stream: WireStream,
    method: String,
    /// What is left of it, as it goes over TCP.
    unsent: Bytes,
    failure: Option<String>,
}

/// An exchange that we broke off. The connection is there until this is dropped, unless it was reset.
#[derive(Debug)]
pub(crate) struct BrokenExchange {
    pub(crate) exchange: Exchange,
    _connection: Option<WireStream>,
}

/// How much of an answer the kernel takes for us before we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// As much as it likes.
    Ordinary,
    /// As little as can be, so that what we have not read was not delivered.
    Little,
}

impl Wire {
    /// Sends all of a request but its last byte, on a connection of its own.
    pub(crate) async fn open(
        &self,
        log: &ProbeLog,
        label: &str,
        addressed: AddressedRequest<'_>,
        receiving: Receiving,
    ) -> Result<OpenRequest, Exchange> {
        let draft = ExchangeDraft::begin(log, label, addressed);
        let last = draft.request.len().saturating_sub(1);
        let (mut stream, draft) = self.begin(log, draft, addressed, receiving, last).await?;
        match stream.seal(draft.request.get(last..).unwrap_or_default()) {
            Ok(unsent) => {
                let method = addressed.request.method.clone();
                Ok(OpenRequest { draft, stream, method, unsent, failure: None })
            }
            Err(reason) => Err(draft.failed(log, reason)),
        }
    }

    /// Sends all of a request, on a connection of its own.
    pub(crate) async fn send(
        &self,
        log: &ProbeLog,
        label: &str,
        addressed: AddressedRequest<'_>,
        receiving: Receiving,
    ) -> Result<OpenRequest, Exchange> {
        let mut open = self.open(log, label, addressed, receiving).await?;
        open.release(log);
        open.complete(log).await;
        match open.failure.take() {
            None => Ok(open),
            Some(reason) => Err(open.draft.failed(log, reason)),
        }
    }

    /// Sends so many bytes of a request, waits until the other side has them, and breaks off.
    pub(crate) async fn cut_request(
        &self,
        log: &ProbeLog,
        label: &str,
        addressed: AddressedRequest<'_>,
        (bytes, end): (usize, CutEnd),
    ) -> Result<BrokenExchange, Exchange> {
        let mut draft = ExchangeDraft::begin(log, label, addressed);
        draft.cut = Some(WireCut::Request { bytes, end });
        let (stream, draft) = self.begin(log, draft, addressed, Receiving::Ordinary, bytes).await?;
        drain(stream.ports().as_slice()).await;
        Ok(break_off(log, draft, stream, Bytes::new(), end).await)
    }

    /// Opens a connection, and writes so much of the request.
    async fn begin(
        &self,
        log: &ProbeLog,
        draft: ExchangeDraft,
        addressed: AddressedRequest<'_>,
        receiving: Receiving,
        bytes: usize,
    ) -> Result<(WireStream, ExchangeDraft), Exchange> {
        let receive_bytes = match receiving {
            Receiving::Ordinary => None,
            Receiving::Little => Some(SMALL_RECEIVE_BYTES),
        };
        let options = ConnectOptions { protocols: &[b"http/1.1"], receive_bytes };
        let mut stream = match self.connect(addressed.address, options).await {
            Ok(stream) => stream,
            Err(reason) => return Err(draft.failed(log, reason)),
        };
        match stream.write(draft.request.get(..bytes).unwrap_or(&draft.request)).await {
            Ok(()) => Ok((stream, draft)),
            Err(reason) => Err(draft.failed(log, reason)),
        }
    }
}

impl OpenRequest {
    /// Lets the last byte go, without waiting for anything.
    pub(crate) fn release(&mut self, log: &ProbeLog) {
        match self.stream.try_send(&self.unsent) {
            Ok(bytes) => self.unsent.advance(bytes),
            // What the kernel does not take now is sent when it is next looked at.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                self.unsent.clear();
                self.failure = Some(format!("the request could not be written: {error}"));
            }
        }
        self.note_sent(log);
    }

    /// Which exchange of its probe it is.
    pub(super) fn number(&self) -> u32 {
        self.draft.number()
    }

    /// The connection, to be looked at without taking anything from it; not with TLS, where more comes than answers.
    pub(super) fn look(&self) -> Option<std::net::TcpStream> {
        self.stream.look()
    }

    /// When the last byte was let go.
    pub(crate) fn sent(&self) -> Option<Duration> {
        self.draft.sent
    }

    /// Waits until the other side has what was sent.
    pub(crate) async fn drained(opened: &[Self]) {
        let ports: Vec<_> = opened.iter().filter_map(|open| open.stream.ports()).collect();
        drain(&ports).await;
    }

    /// Reads the answer.
    pub(crate) async fn read(self, log: &ProbeLog, patience: Duration) -> Exchange {
        self.read_measured(log, patience).await.0
    }

    /// Reads the answer, and says how many bytes it has, if it is whole.
    pub(crate) async fn read_measured(
        mut self,
        log: &ProbeLog,
        patience: Duration,
    ) -> (Exchange, usize) {
        self.complete(log).await;
        match self.failure {
            None => self.draft.read(log, &mut self.stream, &self.method, patience).await,
            Some(reason) => (self.draft.failed(log, reason), 0),
        }
    }

    /// Reads the answer if it comes within this time, or leaves.
    pub(crate) async fn read_or_leave(mut self, log: &ProbeLog, patience: Duration) -> Exchange {
        self.complete(log).await;
        if let Some(reason) = self.failure {
            return self.draft.failed(log, reason);
        }
        let mut answered = None;
        let on_first_byte = || answered = Some(log.elapsed());
        let read = read_answer(&mut self.stream, &self.method, on_first_byte, patience).await;
        self.draft.answered = answered;
        if let AnswerEnd::Silent(received) = read {
            let end = CutEnd::Finish;
            self.draft.cut = Some(WireCut::Answer { bytes: received.len(), end });
            return break_off(log, self.draft, self.stream, received, end).await.exchange;
        }
        self.draft.end(log, ended(read).0)
    }

    /// Reads so many bytes of the answer, at most for so long, and breaks off. None are read if it is none, but for
    /// those that had come: then the answer was there before we left.
    pub(crate) async fn break_off(
        mut self,
        log: &ProbeLog,
        (bytes, end): (usize, CutEnd),
        patience: Duration,
    ) -> BrokenExchange {
        self.complete(log).await;
        let mut received = BytesMut::new();
        if bytes == 0 {
            // It is not waited for that the other side has confirmed the request: that may come with its answer.
            // Some readings need a while to be told of what is there.
            self.stream.read(&mut received, Duration::from_millis(1)).await;
        }
        let until = Instant::now() + patience;
        while received.len() < bytes {
            let left = until.saturating_duration_since(Instant::now());
            let most = bytes - received.len();
            match self.stream.read_most(&mut received, most, left).await {
                Some(Ok(1..)) => {}
                Some(Ok(0) | Err(_)) | None => break,
            }
            self.draft.answered.get_or_insert_with(|| log.elapsed());
        }
        self.draft.cut = Some(WireCut::Answer { bytes, end });
        break_off(log, self.draft, self.stream, received.freeze(), end).await
    }

    /// Sends what is left.
    async fn complete(&mut self, log: &ProbeLog) {
        if self.unsent.is_empty() {
            return;
        }
        if let Err(reason) = self.stream.send(&self.unsent).await {
            self.failure = Some(reason);
        }
        self.unsent.clear();
        self.note_sent(log);
    }

    fn note_sent(&mut self, log: &ProbeLog) {
        if self.unsent.is_empty() && self.failure.is_none() {
            self.draft.sent = Some(log.elapsed());
        }
    }
}

async fn break_off(
    log: &ProbeLog,
    draft: ExchangeDraft,
    mut stream: WireStream,
    received: Bytes,
    end: CutEnd,
) -> BrokenExchange {
    let connection = match end {
        CutEnd::Finish => {
            stream.finish().await;
            Some(stream)
        }
        CutEnd::Reset => {
            stream.reset();
            None
        }
        CutEnd::Silence => Some(stream),
    };
    let exchange = draft.end(log, ExchangeEnd::BrokenOff { received });
    BrokenExchange { exchange, _connection: connection }
}
