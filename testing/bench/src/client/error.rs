use hapax::client::{
    BuildError, CallError, RetryError, TransportError,
    journal::{InvalidJournalRequest, JournalError, OpenError},
};
use hapax::{
    retry::InvalidTerms,
    tower::{BoxError, client::InvalidRetry},
};

/// Why a call could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallBenchError {
    #[error("reqwest cannot make a call")]
    Reqwest(#[from] reqwest::Error),
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    #[error("a request cannot be written")]
    Request(#[from] http::Error),
    #[error("a call through a service has no answer")]
    Service(#[source] BoxError),
    #[error("the layer refuses its options")]
    Options(#[from] InvalidRetry),
    #[error("a budget refuses its terms")]
    Terms(#[from] InvalidTerms),
    #[error("a call through the layer has no answer")]
    Layer(#[source] Box<RetryError>),
    #[error("the transport cannot be set up")]
    Transport(#[from] TransportError),
    #[error("the client cannot be built")]
    Build(#[from] BuildError),
    #[error("a call of the client has no answer")]
    Call(#[source] Box<CallError>),
    #[error("a request cannot be journalled")]
    NotKept(#[from] InvalidJournalRequest),
    #[error("the journal cannot be opened")]
    Open(#[from] OpenError),
    #[error("the journal refuses")]
    Journal(#[from] JournalError),
    #[error("an address cannot be read")]
    Address(#[from] http::uri::InvalidUri),
    #[error("an answer is not the one the upstream gave")]
    NotTheAnswer,
    #[error("an operation that began could not be ended")]
    Lost,
    #[error("the clock that counts CPU time cannot be read")]
    Clock,
}
