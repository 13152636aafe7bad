#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! - [`Client`] and [`ClientBuilder`]; [`Call`], what is sent, and [`NamedOperation`], what it is
//!   called;
//! - [`Answer`], or [`CallError`] with an [`Unfinished`] operation; [`Warning`] for what else there is
//!   to know;
//! - [`ResumeReport`] of a resume, [`Resumer`] and [`Resumption`]; [`journal`] is the file behind
//!   them;
//! - [`Transport`] and the one over [`Reqwest`]; [`RetryOptions`] are those of the tower layer.

mod answer;
mod builder;
mod call;
mod client;
mod error;
pub mod journal;
mod journal_answer;
mod lease;
mod named_operation;
mod pursue;
mod pursuit_registry;
mod resume;
mod resumer;
mod send;
mod transport;
mod window;

pub use hapax_core::retry::Conclusion;
pub use hapax_tower::client::{
    Destinations, Keys, PursuitEvent, RetryError, RetryOptions, StopReason, Tried, Watch,
};

pub use self::{
    answer::{Answer, NotJson, NotKept, Warning},
    builder::{BuildError, ClientBuilder},
    call::{Call, InvalidCall, NamedOperation},
    client::Client,
    error::{CallError, Unfinished, WindowPassed},
    resume::{ResumeReport, Resumption, UnresumedOperation},
    resumer::Resumer,
    transport::{Proxies, Reqwest, ReqwestExchange, ReqwestOptions, Transport, TransportError},
};
