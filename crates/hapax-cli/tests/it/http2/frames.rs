//! Frames as bytes, so that a test can say what a library would forbid.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::world::PATIENCE;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// How much of each answer a server may send before it is told to go on.
const INITIAL_WINDOW_SIZE: u16 = 4;

pub(crate) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// `:status: 400` in the static table.
pub(crate) const BAD_REQUEST: u8 = 0x80 | 12;

/// What became of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// An answer; its status is the first field, as the static table numbers it.
    Answered(u8),
    /// The stream was reset with this error.
    Reset(u32),
    /// The connection was given up with this error.
    GoneAway(u32),
    /// The connection was closed without a word.
    Closed,
}

/// A connection that has said hello.
pub(crate) struct Frames(TcpStream);

impl Frames {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        Self::greet(to, b"").await
    }

    /// A connection that takes the heads of answers and nothing else.
    pub(crate) async fn open_without_window(to: SocketAddr) -> Self {
        let none = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
        Self::greet(to, &none).await
    }

    async fn greet(to: SocketAddr, settings: &[u8]) -> Self {
        let mut frames = Self(TcpStream::connect(to).await.unwrap());
        frames.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        frames.send(&frame(SETTINGS, 0, 0, settings)).await;
        frames
    }

    /// The other side of a connection whose client has said hello.
    pub(crate) async fn accept(connection: TcpStream) -> Self {
        let mut frames = Self(connection);
        frames.send(&frame(SETTINGS, 0, 0, b"")).await;
        frames
    }

    /// The next piece of a request: its stream, its bytes, and whether it is the last one.
    pub(crate) async fn piece(&mut self) -> Option<(u32, Vec<u8>, bool)> {
        loop {
            let (kind, flags, stream, payload) = self.read().await?;
            match kind {
                HEADERS => return Some((stream, Vec::new(), flags & END_STREAM != 0)),
                DATA => return Some((stream, payload, flags & END_STREAM != 0)),
                SETTINGS | PING if flags & ACK == 0 => {
                    let echoed = if kind == PING { &payload[..] } else { b"" };
                    self.send(&frame(kind, ACK, 0, echoed)).await;
                }
                _ => {}
            }
        }
    }

    /// Sends bytes; a server that has closed already is none of its business.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Reads until it is known what became of the stream.
    pub(crate) async fn fate(&mut self, stream: u32) -> Fate {
        let reading = async {
            loop {
                let Some((kind, flags, of, payload)) = self.read().await else {
                    return Fate::Closed;
                };
                match kind {
                    HEADERS if of == stream => return Fate::Answered(payload[0]),
                    RST_STREAM if of == stream => return Fate::Reset(number(&payload)),
                    GOAWAY => return Fate::GoneAway(number(&payload[4..])),
                    SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, b"")).await,
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, reading).await.unwrap()
    }

    /// Waits until the server has read what was sent, and said what it sends by itself.
    pub(crate) async fn settle(&mut self) {
        self.send(&ping()).await;
        let reading = async {
            while let Some((kind, flags, ..)) = self.read().await {
                if kind == PING && flags & ACK != 0 {
                    return;
                }
            }
        };
        timeout(PATIENCE, reading).await.unwrap();
    }

    async fn read(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let len = number(&[0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(len).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((head[3], head[4], number(&head[5..]), payload))
    }
}

/// The head of a request, with these fields as they are.
pub(crate) fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for text in fields.iter().map(|(name, value)| [name, value]) {
        // A literal that is not remembered, with a name of its own.
        block.push(0);
        for text in text {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(HEADERS, flags | END_HEADERS, stream, &block)
}

pub(crate) fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, flags, stream, bytes)
}

/// Asks whether the other side is there.
pub(crate) fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

/// Takes a request back.
pub(crate) fn cancel(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// The head of an answer that says 201.
pub(crate) fn answer(stream: u32) -> Vec<u8> {
    // The name is the eighth of the static table, the value a literal.
    frame(HEADERS, END_HEADERS, stream, b"\x08\x03201")
}

/// Says that a stream was not looked at.
pub(crate) fn refuse(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &7_u32.to_be_bytes())
}

/// Says that no stream after this one was looked at, nor will be.
pub(crate) fn go_away(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), 0_u32.to_be_bytes()].concat())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}
