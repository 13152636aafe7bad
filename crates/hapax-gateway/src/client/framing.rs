//! Where the body of an answer ends.

use bytes::BytesMut;

use super::chunks::{BadChunks, Chunks, NextChunk, split};

/// How the end of a body is known, and how far away it is.
pub(super) enum Framing {
    /// After this many more bytes.
    Left(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Framing {
    /// Takes what comes next off the buffer.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<NextChunk, BadChunks> {
        match self {
            Self::Left(0) => Ok(NextChunk::End),
            Self::Left(_) | Self::UntilClose if buffer.is_empty() => Ok(NextChunk::Later),
            Self::Left(left) => Ok(NextChunk::Data(split(buffer, left))),
            Self::UntilClose => Ok(NextChunk::Data(buffer.split().freeze())),
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
