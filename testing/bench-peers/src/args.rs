//! What the program is asked for.

use std::{path::PathBuf, time::Duration};

use clap::Parser;

use crate::ways::Way;

/// Hapax beside the crates one would use instead.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// One round of one second each: shows whether it works
    #[arg(long)]
    quick: bool,
    /// Rounds of measurements
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Connections of the load
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    connections: Vec<usize>,
    /// Only these ways
    #[arg(long, value_enum, value_delimiter = ',')]
    ways: Vec<Way>,
    /// The exam alone, without measurements
    #[arg(long)]
    exam_only: bool,
    /// Keeps every answer and every measurement in this file
    #[arg(long)]
    json: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// One way as a server: the program starts itself so.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = true)]
pub(crate) struct ServeArgs {
    /// Serves one way instead of comparing all
    #[arg(long, value_enum, hide = true)]
    serve: Option<Way>,
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
    #[arg(long, hide = true, default_value = "")]
    store: String,
    #[arg(long, hide = true, default_value_t = 0)]
    upstream: u16,
    #[arg(long, hide = true)]
    lease_ms: Option<u64>,
    #[arg(long, hide = true)]
    effects: Option<PathBuf>,
}

/// What the program does.
#[derive(Debug)]
pub(crate) enum Mode {
    Serve(Serve),
    Compare(Plan),
}

/// A server to be.
#[derive(Debug, Clone)]
pub(crate) struct Serve {
    pub(crate) way: Way,
    /// Where it listens, on 127.0.0.1.
    pub(crate) port: u16,
    /// Where it keeps what it remembers: a URL or a path, as the way understands it.
    pub(crate) store: String,
    /// What a proxy stands before.
    pub(crate) upstream: u16,
    /// How long an owner is trusted; as the way does by default if `None`.
    pub(crate) lease: Option<Duration>,
    /// Where effects are noted so that they outlive the process.
    pub(crate) effects: Option<PathBuf>,
}

/// What is compared, and for how long.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ways: Vec<Way>,
    pub(crate) rounds: u32,
    pub(crate) duration: Duration,
    pub(crate) connections: Vec<usize>,
    pub(crate) json: Option<PathBuf>,
}

impl Args {
    pub(crate) fn mode(self) -> Mode {
        let ServeArgs { serve, port, store, upstream, lease_ms, effects } = self.serve;
        if let Some(way) = serve {
            let lease = lease_ms.map(Duration::from_millis);
            return Mode::Serve(Serve { way, port, store, upstream, lease, effects });
        }
        let ways = if self.ways.is_empty() { Way::ALL.to_vec() } else { self.ways };
        let (rounds, seconds) =
            if self.quick { (1, 1) } else { (self.rounds, self.seconds.max(1)) };
        Mode::Compare(Plan {
            ways,
            rounds: if self.exam_only { 0 } else { rounds },
            duration: Duration::from_secs(seconds),
            connections: self.connections,
            json: self.json,
        })
    }
}
