#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! - [`Client`] and [`ClientBuilder`]; [`Call`], what is sent, and [`Operation`], what it is called;
//! - [`Answer`], or [`CallError`] with an [`Unfinished`] operation; [`Warning`] for what else there is
//!   to know;
//! - [`Summary`] of a resume, [`Resumer`] and [`Resumption`]; [`journal`] is the file behind them;
//! - [`Transport`] and the one over [`Reqwest`]; [`RetryOptions`] are those of the tower layer.

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
