//! An HTTP client that finishes the job: one key per operation, bounded retries, and a journal that
//! survives a restart.

mod answer;
mod builder;
mod call;
mod client;
mod error;
mod flights;
pub mod journal;
mod journalled;
mod lease;
mod pursue;
mod recorded;
mod resume;
mod resumer;
mod send;
mod transport;
mod window;

pub use hapax_core::retry::Conclusion;
pub use hapax_tower::client::{
    Destinations, Event, Keys, RetryError, RetryOptions, Stop, Tried, Watch,
};

pub use self::{
    answer::{Answer, NotJson, NotKept, Warning},
    builder::{BuildError, ClientBuilder},
    call::{Call, InvalidCall, Operation},
    client::Client,
    error::{CallError, Unfinished, WindowPassed},
    resume::{Left, Resumption, Summary},
    resumer::Resumer,
    transport::{Exchange, Proxies, Reqwest, ReqwestOptions, Transport, TransportError},
};
