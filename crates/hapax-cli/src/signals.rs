//! What the operating system tells the process.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A signal this program listens to. What it asks for is each command's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    HangUp,
    Interrupt,
    Terminate,
}

impl Signal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::HangUp => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// The signals that come to this process from here on.
#[derive(Debug)]
pub(crate) struct Signals {
    hang_up: unix::Signal,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            hang_up: unix::signal(SignalKind::hangup())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }

    /// Ends at the next signal to stop, for those that go on when the terminal is gone.
    pub(crate) async fn stop(&mut self) {
        while self.next().await == Signal::HangUp {}
    }
}
