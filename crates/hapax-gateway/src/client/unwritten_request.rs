//! A request as bytes on their way out. Nothing in it belongs to one connection.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use hapax_tower::{Body, BoxError};
use http::{
    HeaderMap, Method, Request,
    header::{CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING},
    uri::PathAndQuery,
};
use http_body::Body as _;
use tokio::io::AsyncWrite;

/// Room for most heads.
const HEAD_BYTES: usize = 512;
/// Enough to be written at once; more of a body is not asked for before.
const FRAMED_BYTES: usize = 16 << 10;

/// What is left to be written of a request.
pub(super) struct UnwrittenRequest {
    /// The head, and what frames the pieces of a body of unknown length, those pieces included.
    framed: Vec<u8>,
    written: usize,
    /// A piece of a body of known length, written after `framed`.
    piece: Bytes,
    /// Where more comes from, until its end.
    body: Option<Body>,
    length: Length,
    /// Whether anything has left.
    began: bool,
}

/// How the end of a body is known.
enum Length {
    /// This many bytes are still to come.
    Left(u64),
    Chunked,
}

/// Why a request cannot be sent to its end.
pub(super) enum WriteError {
    /// Its body broke off.
    Body(BoxError),
    /// The connection takes no more.
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl UnwrittenRequest {
    pub(super) fn new(request: Request<Body>) -> Self {
        let (parts, body) = request.into_parts();
        let known = body.size_hint().exact();
        let mut framed = Vec::with_capacity(HEAD_BYTES);
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        for text in [parts.method.as_str(), " ", path, " HTTP/1.1\r\n"] {
            framed.extend_from_slice(text.as_bytes());
        }
        for (name, value) in &parts.headers {
            if *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING {
                line(&mut framed, name.as_str(), value.as_bytes());
            }
        }
        // What is said to this connection is named as that (RFC 9110, 10.1.4).
        if parts.headers.contains_key(TE) {
            line(&mut framed, CONNECTION.as_str(), b"te");
        }
        let says_nothing = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        match known {
            Some(0) if says_nothing && !parts.headers.contains_key(CONTENT_LENGTH) => {}
            Some(length) => {
                line(&mut framed, CONTENT_LENGTH.as_str(), length.to_string().as_bytes());
            }
            None => line(&mut framed, TRANSFER_ENCODING.as_str(), b"chunked"),
        }
        framed.extend_from_slice(b"\r\n");
        Self {
            framed,
            written: 0,
            piece: Bytes::new(),
            body: (known != Some(0)).then_some(body),
            length: known.map_or(Length::Chunked, Length::Left),
            began: false,
        }
    }

    /// Whether anything of it has left.
    pub(super) fn began(&self) -> bool {
        self.began
    }

    /// Whether all of it has left.
    pub(super) fn is_done(&self) -> bool {
        self.body.is_none() && !self.is_pending()
    }

    /// Writes what can be written now; ready when all of it has left.
    pub(super) fn poll_write<W>(
        &mut self,
        io: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>>
    where
        W: AsyncWrite + Unpin,
    {
        loop {
            // Asked before the head is written, so that both leave together.
            let comes_later =
                self.piece.is_empty() && self.poll_body(cx).map_err(WriteError::Body)?.is_pending();
            if !self.is_pending() {
                if !comes_later && self.body.is_some() {
                    continue;
                }
                ready!(Pin::new(&mut *io).poll_flush(cx))?;
                return if comes_later { Poll::Pending } else { Poll::Ready(Ok(())) };
            }
            let bytes = match (self.framed.get(self.written..), &*self.piece) {
                (None | Some([]), piece) => ready!(Pin::new(&mut *io).poll_write(cx, piece))?,
                (Some(framed), []) => ready!(Pin::new(&mut *io).poll_write(cx, framed))?,
                (Some(framed), piece) => {
                    let both = [IoSlice::new(framed), IoSlice::new(piece)];
                    ready!(Pin::new(&mut *io).poll_write_vectored(cx, &both))?
                }
            };
            if bytes == 0 {
                return Poll::Ready(Err(WriteError::Io(io::ErrorKind::WriteZero.into())));
            }
            self.wrote(bytes);
        }
    }

    fn is_pending(&self) -> bool {
        self.written < self.framed.len() || !self.piece.is_empty()
    }

    fn wrote(&mut self, bytes: usize) {
        self.began = true;
        let framed = bytes.min(self.framed.len() - self.written);
        self.written += framed;
        self.piece.advance(bytes - framed);
        if self.written == self.framed.len() {
            self.framed.clear();
            self.written = 0;
        }
    }

    /// Takes the next piece of the body, if it is there; ready too when there is none to come.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, BoxError> {
        let has_room = self.framed.is_empty() || !self.began && self.framed.len() < FRAMED_BYTES;
        if !has_room {
            return Ok(Poll::Ready(()));
        }
        let Some(body) = &mut self.body else { return Ok(Poll::Ready(())) };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
            return Ok(Poll::Pending);
        };
        let (data, trailers) = match frame.transpose()?.map(http_body::Frame::into_data) {
            Some(Ok(data)) => (Some(data), HeaderMap::new()),
            // Nothing follows them.
            Some(Err(frame)) => (None, frame.into_trailers().unwrap_or_default()),
            None => (None, HeaderMap::new()),
        };
        let ended = data.is_none() || body.is_end_stream();
        let data = data.unwrap_or_default();
        match &mut self.length {
            Length::Left(left) => {
                let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                *left = left.checked_sub(length).ok_or("a body is longer than it said")?;
                if ended && *left > 0 {
                    return Err("a body is shorter than it said".into());
                }
                self.piece = data;
                if *left == 0 {
                    self.body = None;
                }
            }
            Length::Chunked => {
                if !data.is_empty() {
                    self.framed.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                    self.framed.extend_from_slice(&data);
                    self.framed.extend_from_slice(b"\r\n");
                }
                if ended {
                    self.framed.extend_from_slice(b"0\r\n");
                    for (name, value) in &trailers {
                        line(&mut self.framed, name.as_str(), value.as_bytes());
                    }
                    self.framed.extend_from_slice(b"\r\n");
                    self.body = None;
                }
            }
        }
        Ok(Poll::Ready(()))
    }
}

fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}
