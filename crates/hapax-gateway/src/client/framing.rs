//! Where the body of an answer ends.

use bytes::BytesMut;

use super::chunks::{BadChunks, Chunks, Next, split};

/// How the end of a body is known, and how far away it is.
pub(super) enum Framing {
    /// After this many more bytes.
    Left(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Framing {
    /// Takes what comes next off the buffer.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<Next, BadChunks> {
        match self {
            Self::Left(0) => Ok(Next::End),
            Self::Left(_) | Self::UntilClose if buffer.is_empty() => Ok(Next::Later),
            Self::Left(left) => Ok(Next::Data(split(buffer, left))),
            Self::UntilClose => Ok(Next::Data(buffer.split().freeze())),
            Self::Chunked(chunks) => chunks.next(buffer),
        }
    }

    /// How many more bytes are sure to come.
    pub(super) fn bytes_left(&self) -> usize {
        match self {
            Self::Left(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Self::Chunked(_) | Self::UntilClose => 0,
        }
    }

    /// Whether the body is complete when its connection ends now.
    pub(super) fn ends_here(&self) -> bool {
        match self {
            Self::Left(left) => *left == 0,
            Self::Chunked(chunks) => matches!(chunks, Chunks::End),
            Self::UntilClose => true,
        }
    }
}
