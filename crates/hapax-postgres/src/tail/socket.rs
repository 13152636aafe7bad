//! A connection in replication mode, which the usual client does not offer.

use std::{io, ops::Range};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use postgres_protocol::message::{
    backend::{ErrorResponseBody, Header, Message},
    frontend,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
    fallible_iterator::FallibleIterator,
    tls::{MakeTlsConnect, TlsConnect},
};

use super::{
    authentication::{self, StreamCredentials},
    pgoutput::Input,
    prepare::StreamIdentity,
    stream_end::StreamEnd,
};
use crate::connect::{Address, HostAttempt, PostgresTls};

/// The largest message taken from the server: an event with all its headers fits many times.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// `CopyBothResponse`, which only replication knows.
const COPY_BOTH: u8 = b'W';
const COPY_DATA: u8 = b'd';

/// A connection on which the server is asked to stream.
pub(super) struct Socket {
    stream: Box<dyn Stream>,
    input: BytesMut,
    output: BytesMut,
    /// What ties a password's proof to this connection, if it is encrypted.
    end_point: Option<Vec<u8>>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What the server sends once it streams.
#[derive(Debug)]
pub(super) enum Frame {
    /// A message of the plugin.
    Data(Bytes),
    /// Everything up to here has been sent; whether it wants to be answered at once.
    Through { end: u64, clock: u64, answer: bool },
}

impl Socket {
    /// Connects to the first host that will do.
    pub(super) async fn connect(
        address: &Address,
        identity: &StreamIdentity,
    ) -> Result<Self, StreamEnd> {
        let mut refused = StreamEnd::Closed;
        for attempt in address.attempts().await.map_err(StreamEnd::connecting)? {
            match Self::enter(&attempt, identity).await {
                Ok(socket) => return Ok(socket),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    async fn enter(attempt: &HostAttempt, identity: &StreamIdentity) -> Result<Self, StreamEnd> {
        let config = attempt.config();
        let (stream, end_point) = stream(config, attempt.tls()).await?;
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let mut socket = Self { stream, input, output, end_point };
        socket.begin(attempt, identity).await?;
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite
            && socket.command("SHOW transaction_read_only").await? == ["on"]
        {
            return Err(StreamEnd::Elsewhere);
        }
        Ok(socket)
    }

    async fn begin(
        &mut self,
        attempt: &HostAttempt,
        identity: &StreamIdentity,
    ) -> Result<(), StreamEnd> {
        let config = attempt.config();
        let user = config.get_user().unwrap_or(&identity.role);
        let parameters = [
            ("user", user),
            ("database", &*identity.database),
            ("replication", "database"),
            ("client_encoding", "UTF8"),
            ("application_name", attempt.application_name().unwrap_or("hapax tail")),
        ];
        frontend::startup_message(parameters, &mut self.output)?;
        let end_point = self.end_point.take();
        let credentials = StreamCredentials {
            user,
            password: config.get_password(),
            binding: config.get_channel_binding(),
            end_point: end_point.as_deref(),
        };
        authentication::convince(self, &credentials).await?;
        while !matches!(self.message().await?, Message::ReadyForQuery(_)) {}
        Ok(())
    }

    /// Runs a command that answers with one row; its columns as text.
    pub(super) async fn command(&mut self, text: &str) -> Result<Vec<String>, StreamEnd> {
        frontend::query(text, &mut self.output)?;
        let mut columns = Vec::new();
        loop {
            let message = self.message().await?;
            if let Message::DataRow(row) = &message {
                let text = |range: Option<Range<usize>>| {
                    let value = range.map(|range| &row.buffer()[range]).unwrap_or_default();
                    Ok(String::from_utf8_lossy(value).into_owned())
                };
                columns = row.ranges().map(text).collect()?;
            }
            if let Message::ReadyForQuery(_) = message {
                return Ok(columns);
            }
        }
    }

    /// Has the server stream.
    pub(super) async fn start(&mut self, command: &str) -> Result<(), StreamEnd> {
        frontend::query(command, &mut self.output)?;
        self.flush().await?;
        loop {
            let header = self.fill().await?;
            if header.tag() == COPY_BOTH {
                self.input.advance(total(header)?);
                return Ok(());
            }
            self.parse()?;
        }
    }

    /// The next thing it sends. Dropping the future loses nothing.
    pub(super) async fn frame(&mut self) -> Result<Frame, StreamEnd> {
        loop {
            let header = self.fill().await?;
            if header.tag() != COPY_DATA {
                if matches!(self.parse()?, Message::CopyDone | Message::CommandComplete(_)) {
                    return Err(StreamEnd::Closed);
                }
                continue;
            }
            let mut message = self.input.split_to(total(header)?).freeze();
            message.advance(5);
            let mut input = Input(&message);
            match input.u8()? {
                b'w' => {
                    let data = message.len() - input.0.len() + 24;
                    input.take(24)?;
                    return Ok(Frame::Data(message.slice(data..)));
                }
                b'k' => {
                    let (end, clock) = (input.u64()?, input.u64()?);
                    return Ok(Frame::Through { end, clock, answer: input.u8()? != 0 });
                }
                _ => {}
            }
        }
    }

    /// Tells the server that it need keep nothing before this; `clock` is its own.
    pub(super) async fn confirm(&mut self, through: u64, clock: u64) -> Result<(), StreamEnd> {
        let mut status = BytesMut::with_capacity(34);
        status.put_u8(b'r');
        for position in [through; 3] {
            status.put_u64(position);
        }
        status.put_u64(clock);
        status.put_u8(0);
        frontend::CopyData::new(status.freeze())?.write(&mut self.output);
        self.flush().await
    }

    /// What is to be sent with the next [`message`](Self::message).
    pub(super) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Sends what is to be sent; the server's next message.
    pub(super) async fn message(&mut self) -> Result<Message, StreamEnd> {
        self.flush().await?;
        self.fill().await?;
        self.parse()
    }

    async fn flush(&mut self) -> Result<(), StreamEnd> {
        self.stream.write_all_buf(&mut self.output).await?;
        Ok(self.stream.flush().await?)
    }

    /// Reads until a whole message is there.
    async fn fill(&mut self) -> Result<Header, StreamEnd> {
        loop {
            if let Some(header) = Header::parse(&self.input)? {
                let total = total(header)?;
                if self.input.len() >= total {
                    return Ok(header);
                }
                self.input.reserve(total - self.input.len());
            }
            self.input.reserve(64 << 10);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(StreamEnd::Closed);
            }
        }
    }

    fn parse(&mut self) -> Result<Message, StreamEnd> {
        match Message::parse(&mut self.input)? {
            Some(Message::ErrorResponse(body)) => Err(told(&body)),
            Some(message) => Ok(message),
            None => Err(StreamEnd::Garbled("a message is too short")),
        }
    }
}

fn total(header: Header) -> Result<usize, StreamEnd> {
    let total = usize::try_from(header.len()).unwrap_or(usize::MAX).saturating_add(1);
    if total > MESSAGE_BYTES_MAX {
        Err(StreamEnd::Garbled("a message is too long"))
    } else {
        Ok(total)
    }
}

fn told(body: &ErrorResponseBody) -> StreamEnd {
    let (mut code, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value(),
            b'M' => message = value(),
            _ => {}
        }
    }
    StreamEnd::Server { code, message }
}

/// A stream to the one host of this configuration, encrypted as it says, and what a proof is tied to on it.
async fn stream(
    config: &Config,
    tls: &PostgresTls,
) -> Result<(Box<dyn Stream>, Option<Vec<u8>>), StreamEnd> {
    let nowhere = || io::Error::from(io::ErrorKind::AddrNotAvailable);
    let port = *config.get_ports().first().ok_or_else(nowhere)?;
    let host = match config.get_hosts().first().ok_or_else(nowhere)? {
        Host::Tcp(host) => host,
        Host::Unix(dir) => {
            let path = dir.join(format!(".s.PGSQL.{port}"));
            return Ok((Box::new(UnixStream::connect(path).await?), None));
        }
    };
    let mut stream = match config.get_hostaddrs().first() {
        Some(address) => TcpStream::connect((*address, port)).await?,
        None => TcpStream::connect((&**host, port)).await?,
    };
    stream.set_nodelay(true)?;
    if !is_encrypted(&mut stream, config.get_ssl_mode(), tls).await? {
        return Ok((Box::new(stream), None));
    }
    let handshake = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls.clone(), host);
    let handshake = handshake.map_err(io::Error::other)?;
    let stream = handshake.connect(stream).await?;
    let end_point = stream.end_point();
    Ok((Box::new(stream), end_point))
}

/// Asks whether the server encrypts, unless it is told to. False if neither side insists on it.
async fn is_encrypted(
    stream: &mut TcpStream,
    mode: SslMode,
    tls: &PostgresTls,
) -> Result<bool, StreamEnd> {
    if mode == SslMode::Disable || tls.is_direct() {
        return Ok(mode != SslMode::Disable);
    }
    let mut question = BytesMut::new();
    frontend::ssl_request(&mut question);
    stream.write_all(&question).await?;
    match (stream.read_u8().await?, mode) {
        (b'S', _) => Ok(true),
        (_, SslMode::Prefer) => Ok(false),
        (_, _) => Err(StreamEnd::NoTls),
    }
}
