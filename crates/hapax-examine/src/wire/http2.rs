//! The same over HTTP/2.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, future::join_all};
use h2::{
    Ping, PingPong, Reason, RecvStream, SendStream,
    client::{self, ResponseFuture, SendRequest},
};
use http::{Request, Response, Version};
use tokio::{
    task::AbortHandle,
    time::{Instant, timeout},
};

use super::{
    CutEnd, Wire, WireCut,
    draft::{AddressedRequest, ExchangeDraft},
    held_output::{HeldOutput, OutputHold},
    race::RacedExchanges,
    stream::ConnectOptions,
};
use crate::{Exchange, ExchangeEnd, HttpAddress, ProbeLog, RawAnswer, WireProtocol};

/// The longest that the other side may take to show that it speaks HTTP/2.
const GREETING_PATIENCE: Duration = Duration::from_secs(2);
/// The longest that our own frames take to be written.
const FRAMES_PATIENCE: Duration = Duration::from_secs(1);
const FRAME_HEAD_BYTES: usize = 9;
/// More than any answer has, so that none waits for us.
const WINDOW_BYTES: u32 = 128 * 1024 * 1024;

/// A connection over which streams are opened.
#[derive(Debug)]
struct Http2Connection {
    sender: SendRequest<Bytes>,
    ping: Option<PingPong>,
    hold: OutputHold,
    driver: AbortHandle,
    authority: String,
    scheme: &'static str,
}

/// A request of which the last byte of its body has not been sent.
#[derive(Debug)]
struct OpenStream {
    draft: ExchangeDraft,
    response: ResponseFuture,
    body: SendStream<Bytes>,
    last: Bytes,
}

impl Wire {
    /// Whether HTTP/2 is spoken there: agreed on by ALPN with TLS, by prior knowledge without.
    pub async fn speaks_http2(&self, address: &HttpAddress) -> bool {
        match self.connect_http2(address).await {
            Ok(mut connection) => connection.is_answered(GREETING_PATIENCE).await,
            Err(_) => false,
        }
    }

    /// Opens a stream for each, all of one connection, and sends all but the last byte of their bodies; then the
    /// frames with the last bytes leave in one write, in this order of the racers.
    pub(crate) async fn race_http2(
        &self,
        log: &ProbeLog,
        racers: &[AddressedRequest<'_>],
        order: &[usize],
        patience: Duration,
    ) -> RacedExchanges {
        let drafts: Vec<_> = racers
            .iter()
            .enumerate()
            .map(|(at, racer)| begin(log, &format!("duplicate {}", at + 1), *racer))
            .collect();
        let unsent = |exchanges| RacedExchanges { exchanges, together: 0 };
        let Some(first) = racers.first() else { return unsent(Vec::new()) };
        let mut connection = match self.connect_http2(first.address).await {
            Ok(connection) => connection,
            Err(reason) => {
                let failed = drafts.into_iter().map(|one| one.failed(log, reason.clone()));
                return unsent(failed.collect());
            }
        };
        let (mut opened, mut ended) = (Vec::new(), Vec::new());
        for (at, (draft, racer)) in drafts.into_iter().zip(racers).enumerate() {
            match connection.open(draft, *racer).await {
                Ok(open) => opened.push((order.iter().position(|one| *one == at), open)),
                Err((draft, reason)) => ended.push(draft.failed(log, reason)),
            }
        }
        opened.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
        let mut opened: Vec<_> = opened.into_iter().map(|(_, open)| open).collect();
        // Whoever answers this has read what came before it.
        connection.is_answered(patience).await;
        connection.hold.hold();
        let held = opened.iter().map(|open| FRAME_HEAD_BYTES + open.last.len()).sum();
        for open in &mut opened {
            open.release();
        }
        let is_one_write = connection.hold.holds(held, FRAMES_PATIENCE).await;
        let left = connection.hold.release(FRAMES_PATIENCE).await;
        for open in &mut opened {
            open.draft.sent = left.map(|left| log.elapsed().saturating_sub(left.elapsed()));
        }
        let is_at_once = is_one_write && left.is_some();
        ended.extend(join_all(opened.into_iter().map(|open| open.read(log, patience))).await);
        ended.sort_by_key(|exchange| exchange.number);
        let answered = ended.iter().filter(|exchange| exchange.answer().is_some());
        let together = if is_at_once { answered.count() } else { 0 };
        RacedExchanges { exchanges: ended, together }
    }

    /// Sends a request on a stream, waits so long for its answer, and resets the stream if none has begun.
    pub(crate) async fn reset_http2(
        &self,
        log: &ProbeLog,
        label: &str,
        addressed: AddressedRequest<'_>,
        after: Duration,
    ) -> Exchange {
        let draft = begin(log, label, addressed);
        let mut connection = match self.connect_http2(addressed.address).await {
            Ok(connection) => connection,
            Err(reason) => return draft.failed(log, reason),
        };
        // So that the time counts from when the other side can have it.
        connection.is_answered(GREETING_PATIENCE).await;
        let mut open = match connection.open(draft, addressed).await {
            Ok(open) => open,
            Err((draft, reason)) => return draft.failed(log, reason),
        };
        open.release();
        connection.is_answered(GREETING_PATIENCE).await;
        open.draft.sent = Some(log.elapsed());
        tokio::time::sleep(after).await;
        if let Some(response) = (&mut open.response).now_or_never() {
            let OpenStream { draft, .. } = open;
            return read(log, draft, response, GREETING_PATIENCE).await;
        }
        open.body.send_reset(Reason::CANCEL);
        // The stream is reset for the other side once it has this.
        connection.is_answered(GREETING_PATIENCE).await;
        open.draft.cut = Some(WireCut::Answer { bytes: 0, end: CutEnd::Reset });
        open.draft.end(log, ExchangeEnd::BrokenOff { received: Bytes::new() })
    }

    async fn connect_http2(&self, address: &HttpAddress) -> Result<Http2Connection, String> {
        let options = ConnectOptions { protocols: &[b"h2", b"http/1.1"], receive_bytes: None };
        let stream = self.connect(address, options).await?;
        if address.tls && stream.agreed() != Some(b"h2") {
            return Err(format!("{address} does not agree on HTTP/2"));
        }
        let (output, hold) = HeldOutput::new(stream);
        let mut builder = client::Builder::new();
        builder.enable_push(false);
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let shaken = builder.handshake(output).await;
        let (sender, mut connection) =
            shaken.map_err(|error| format!("{address} does not speak HTTP/2: {error}"))?;
        let ping = connection.ping_pong();
        let driver = tokio::spawn(async move {
            // How it ended shows at its streams.
            let _ = connection.await;
        });
        let scheme = if address.tls { "https" } else { "http" };
        let driver = driver.abort_handle();
        Ok(Http2Connection { sender, ping, hold, driver, authority: address.authority(), scheme })
    }
}

impl Http2Connection {
    /// Whether the other side answers a ping within this time: it has then read all that was sent before.
    async fn is_answered(&mut self, patience: Duration) -> bool {
        let Some(ping) = &mut self.ping else { return false };
        timeout(patience, ping.ping(Ping::opaque())).await.is_ok_and(|pong| pong.is_ok())
    }

    /// Opens a stream, and sends all but the last byte of its body.
    async fn open(
        &mut self,
        draft: ExchangeDraft,
        addressed: AddressedRequest<'_>,
    ) -> Result<OpenStream, (ExchangeDraft, String)> {
        let not_sent = |error| format!("it could not be sent over HTTP/2: {error}");
        let request = addressed.request;
        let whole = request.http1(&self.authority);
        let content = whole.bytes.slice(whole.body_at..);
        let uri = format!("{}://{}{}", self.scheme, self.authority, request.path);
        let mut head = Request::builder()
            .method(request.method.as_str())
            .uri(uri)
            .version(Version::HTTP_2)
            .header("content-length", content.len());
        for (name, value) in request.all_headers() {
            head = head.header(name, value);
        }
        let head = match head.body(()) {
            Ok(head) => head,
            Err(error) => return Err((draft, error.to_string())),
        };
        let last = content.len().saturating_sub(1);
        let opening = async {
            let mut sender = self.sender.clone().ready().await.map_err(not_sent)?;
            let (response, mut body) = sender.send_request(head, false).map_err(not_sent)?;
            if last > 0 {
                body.send_data(content.slice(..last), false).map_err(not_sent)?;
            }
            Ok((response, body))
        };
        match timeout(GREETING_PATIENCE, opening).await {
            Ok(Ok((response, body))) => {
                Ok(OpenStream { draft, response, body, last: content.slice(last..) })
            }
            Ok(Err(reason)) => Err((draft, reason)),
            Err(_) => Err((draft, "no stream could be opened".to_owned())),
        }
    }
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl OpenStream {
    /// Hands over the rest of the body.
    fn release(&mut self) {
        // A stream that is gone says so when its answer is read.
        let _ = self.body.send_data(self.last.clone(), true);
    }

    async fn read(self, log: &ProbeLog, patience: Duration) -> Exchange {
        let Self { draft, response, .. } = self;
        let until = Instant::now() + patience;
        match timeout(patience, response).await {
            Ok(response) => {
                read(log, draft, response, until.saturating_duration_since(Instant::now())).await
            }
            Err(_) => draft.end(log, ExchangeEnd::Silent { received: Bytes::new() }),
        }
    }
}

fn begin(log: &ProbeLog, label: &str, addressed: AddressedRequest<'_>) -> ExchangeDraft {
    let mut draft = ExchangeDraft::begin(log, label, addressed);
    draft.protocol = WireProtocol::Http2;
    draft
}

/// Reads the body of an answer that has begun.
async fn read(
    log: &ProbeLog,
    mut draft: ExchangeDraft,
    response: Result<Response<RecvStream>, h2::Error>,
    patience: Duration,
) -> Exchange {
    let (head, mut body) = match response {
        Ok(response) => response.into_parts(),
        Err(error) => return draft.end(log, broken(&error, Bytes::new())),
    };
    draft.answered = Some(log.elapsed());
    let mut received = BytesMut::new();
    let reading = async {
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            received.extend_from_slice(&data);
        }
        Ok(())
    };
    let read = timeout(patience, reading).await;
    let received = received.freeze();
    let end = match read {
        Err(_) => ExchangeEnd::Silent { received },
        Ok(Err(error)) => broken(&error, received),
        Ok(Ok(())) => {
            let text =
                |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = head.headers.iter();
            let headers =
                headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
            ExchangeEnd::Answered(RawAnswer {
                status: head.status.as_u16(),
                headers,
                body: received,
            })
        }
    };
    draft.end(log, end)
}

fn broken(error: &h2::Error, received: Bytes) -> ExchangeEnd {
    if error.is_io() || error.is_go_away() {
        return ExchangeEnd::Closed { received };
    }
    ExchangeEnd::Failed { reason: format!("the stream ended early: {error}") }
}
