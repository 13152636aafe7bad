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
use tokio_postgres::{Config, config::Host, fallible_iterator::FallibleIterator};

use super::{authentication, pgoutput::Input, prepare::StreamIdentity, stream_end::StreamEnd};

/// The largest message taken from the server: an event with all its headers fits many times.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const PORT: u16 = 5432;
/// `CopyBothResponse`, which only replication knows.
const COPY_BOTH: u8 = b'W';
const COPY_DATA: u8 = b'd';

/// A connection on which the server is asked to stream.
pub(super) struct Socket {
    stream: Box<dyn Stream>,
    input: BytesMut,
    output: BytesMut,
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
    /// Connects to the first host that answers.
    pub(super) async fn connect(
        config: &Config,
        identity: &StreamIdentity,
    ) -> Result<Self, StreamEnd> {
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for at in 0..config.get_hosts().len().max(config.get_hostaddrs().len()) {
            match stream(config, at).await {
                Ok(stream) => {
                    let (input, output) = (BytesMut::new(), BytesMut::new());
                    let mut socket = Self { stream, input, output };
                    socket.begin(config, identity).await?;
                    return Ok(socket);
                }
                Err(error) => refused = error,
            }
        }
        Err(refused.into())
    }

    async fn begin(&mut self, config: &Config, identity: &StreamIdentity) -> Result<(), StreamEnd> {
        let user = config.get_user().unwrap_or(&identity.role);
        let parameters = [
            ("user", user),
            ("database", &*identity.database),
            ("replication", "database"),
            ("client_encoding", "UTF8"),
            ("application_name", config.get_application_name().unwrap_or("hapax tail")),
        ];
        frontend::startup_message(parameters, &mut self.output)?;
        authentication::convince(self, user, config.get_password()).await?;
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

/// A stream to the host at this place of the configuration.
async fn stream(config: &Config, at: usize) -> io::Result<Box<dyn Stream>> {
    let ports = config.get_ports();
    let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(PORT);
    if let Some(address) = config.get_hostaddrs().get(at) {
        return tcp((*address, port)).await;
    }
    match config.get_hosts().get(at) {
        Some(Host::Tcp(host)) => tcp((&**host, port)).await,
        Some(Host::Unix(dir)) => {
            let path = dir.join(format!(".s.PGSQL.{port}"));
            Ok(Box::new(UnixStream::connect(path).await?))
        }
        None => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

async fn tcp(address: impl tokio::net::ToSocketAddrs) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
