//! Why a request got no answer, and why a client could not be made.

use hapax_tower::BoxError;

/// Why a request got no complete answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Nothing of it left this process, or the upstream said that it looked at nothing of it: nothing
    /// happened.
    #[error("the upstream cannot be reached; nothing was sent")]
    NothingSent(#[source] BoxError),
    /// Some of it may have left; what became of it is unknown.
    #[error("the upstream gave no complete answer")]
    Unanswered(#[source] BoxError),
}

impl SendError {
    /// Whether what failed was the request's own body, not the upstream.
    pub fn is_request_broken(&self) -> bool {
        let (Self::NothingSent(cause) | Self::Unanswered(cause)) = self;
        cause.is::<RequestBroken>()
    }
}

/// The body of the request broke off before its end, which is its sender's doing and not the
/// upstream's: a source of [`SendError`].
#[derive(Debug, thiserror::Error)]
#[error("the request ended early")]
pub struct RequestBroken(#[source] pub(crate) BoxError);

/// A path could lead out of what the upstream is asked for.
#[derive(Debug, thiserror::Error)]
#[error("the path could leave the prefix of the upstream")]
pub(crate) struct OutsidePrefix;

/// Why a client could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamClientError {
    /// The URL names no host.
    #[error("the URL of the upstream names no host; write `http://host:port`")]
    NoAuthority,
    /// The URL is neither http nor https.
    #[error("`{scheme}` is not a scheme of an upstream; write `http://…` or `https://…`")]
    Scheme {
        /// The scheme given.
        scheme: String,
    },
    /// What the gateway shows of itself cannot be used.
    #[error("the certificate to show cannot be used: {from}")]
    Identity {
        /// Where it was looked for.
        from: String,
        /// What went wrong.
        #[source]
        cause: BoxError,
    },
    /// The certificates to trust cannot be read.
    #[error("the certificates to trust cannot be read from {from}")]
    Certificates {
        /// Where they were looked for.
        from: String,
        /// What went wrong.
        #[source]
        cause: BoxError,
    },
}
