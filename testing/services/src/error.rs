use std::{io, time::Duration};

/// Why a server is not there, as what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// It is not on this machine and cannot be installed by this user.
    #[error("{server} is not installed; {remedy}")]
    Missing {
        /// Which server.
        server: &'static str,
        /// What makes it available.
        remedy: &'static str,
    },
    /// It is fetched from where its makers publish it, and that failed.
    #[error("{server} could not be fetched; {remedy}")]
    NotFetched {
        /// Which server.
        server: &'static str,
        /// What fetching it takes.
        remedy: &'static str,
        /// Why it failed.
        source: Box<Self>,
    },
    /// What was given is not where a server is.
    #[error("this is no address of {server}; write {expected}")]
    Address {
        /// Which server.
        server: &'static str,
        /// How its address is written.
        expected: &'static str,
    },
    /// A program that had to succeed first did not.
    #[error("`{command}` failed ({status}):\n{output}")]
    CommandFailed {
        /// What was run.
        command: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// It ended before it was ready.
    #[error("{server} ended before it was ready ({status}); the end of its log:\n{log}")]
    Died {
        /// Which server.
        server: &'static str,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// Another program listens on its port.
    #[error("another program took the port of {server}; end it, then start {server} again")]
    PortTaken {
        /// Which server.
        server: &'static str,
    },
    /// It did not do what it was asked in time.
    #[error("{what} took longer than {limit:?}; the end of its log:\n{log}")]
    TooSlow {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
    /// The machine refused something ordinary.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it was refused.
        #[source]
        source: io::Error,
    },
}

impl ServiceError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    pub(crate) fn not_fetched(
        server: &'static str,
        remedy: &'static str,
    ) -> impl FnOnce(Self) -> Self {
        move |source| Self::NotFetched { server, remedy, source: Box::new(source) }
    }
}
