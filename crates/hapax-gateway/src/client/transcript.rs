//! What the client makes of an answer's bytes, without a connection.

use bytes::{Bytes, BytesMut};
use hapax_tower::BoxError;
use http::{HeaderMap, Method, Response};

use super::{
    chunks::NextChunk,
    head::{self, ExpectedAnswer, Head, HeadLimits},
};
use crate::config::Upstream;

/// An answer as it was understood.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// Its head and its body.
    pub response: Response<Bytes>,
    /// What came after the body.
    pub trailers: HeaderMap,
    /// Whether its connection would be used for another request.
    pub keeps_open: bool,
}

/// Reads what this upstream answers to a request with this method, piece by piece, by the rules of
/// [`UpstreamClient::send`](super::UpstreamClient::send). After the last piece the connection has ended.
pub fn read_answer<'a>(
    upstream: &Upstream,
    method: &Method,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Transcript, BoxError> {
    let (limits, mut buffer) = (HeadLimits::of(upstream), BytesMut::new());
    let mut pieces = pieces.into_iter();
    let Head { response, mut framing, keeps_open } = loop {
        if !buffer.is_empty()
            && let Some(head) = head::take(&mut buffer, ExpectedAnswer::to(method), limits)?
        {
            break head;
        }
        buffer.extend_from_slice(pieces.next().ok_or("the head ended early")?);
    };
    let (mut body, mut trailers) = (BytesMut::new(), HeaderMap::new());
    loop {
        match framing.next(&mut buffer)? {
            NextChunk::Data(data) => body.extend_from_slice(&data),
            NextChunk::Trailers(after) => trailers = after,
            NextChunk::End => break,
            NextChunk::Later => match pieces.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None if framing.ends_here() => break,
                None => return Err("the body ended early".into()),
            },
        }
    }
    // What comes after the answer belongs to nobody.
    let has_more = !buffer.is_empty() || pieces.any(|piece| !piece.is_empty());
    let response = response.map(|()| body.freeze());
    Ok(Transcript { response, trailers, keeps_open: keeps_open && !has_more })
}
