//! Where a request or its answer is broken off, and how.

/// Where an exchange is broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireCut {
    /// So many bytes of the request are sent, and then no more.
    Request {
        /// How many.
        bytes: usize,
        /// What happens then.
        end: CutEnd,
    },
    /// All of the request is sent, and so many bytes of the answer are read.
    Answer {
        /// How many; none: before the first.
        bytes: usize,
        /// What happens then.
        end: CutEnd,
    },
}

/// How an exchange is broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutEnd {
    /// We say that nothing more comes (FIN).
    Finish,
    /// The connection is reset (RST).
    Reset,
    /// Nothing is said, and the connection stays.
    Silence,
}
