//! How the log is read at present.

use std::{sync::Arc, time::Instant};

/// How the log is read at present, and what that costs the server.
#[derive(Debug, Clone)]
pub struct TailStatus {
    /// Where looks are answered from.
    pub mode: TailMode,
    /// Since when, by this machine's clock.
    pub since: Instant,
    /// How far the stream was behind the server's log when that was last measured, in bytes.
    pub lag_bytes: u64,
    /// How much of its log the server kept for the stream when that was last measured, in bytes.
    pub kept_bytes: u64,
    /// How many looks the stream has answered.
    pub stream_looks: u64,
    /// How many looks the table has answered.
    pub table_looks: u64,
}

/// Where looks are answered from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailMode {
    /// From what was streamed, with the table for what is older.
    Streaming,
    /// From the table, as without a stream.
    Table(TailReason),
}

/// Why the table is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailReason {
    /// The stream has not begun: the server lets every transaction end first that was running.
    Starting,
    /// The stream has ended, and is begun again after a pause.
    Lost {
        /// Why, in words.
        cause: Arc<str>,
    },
    /// The stream does not keep up with the server's log.
    Behind,
}
