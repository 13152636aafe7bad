//! The one way to connect: every connection to PostgreSQL is made here, or as it is said here.
//!
//! - `address`: [`Address`], which connects; `attempt`: one server of those it names;
//! - `parameters`: what an address says; `service`: what a service file adds; `settings`: what it means;
//! - `password`: where the password comes from; `pool`: pools of others;
//! - `tls`, `verifier` and `channel_binding`: encryption, and who is believed to be the server;
//! - `error`: why there is no connection.
//!
//! Everything that can change while a process runs is read for each connection: files of passwords,
//! services and certificates, and what a command prints.

mod address;
mod attempt;
mod channel_binding;
mod error;
mod parameters;
mod password;
#[cfg(feature = "deadpool")]
mod pool;
mod service;
mod settings;
mod tls;
mod verifier;

#[cfg(feature = "tail")]
pub(crate) use self::attempt::HostAttempt;
pub use self::{
    address::Address,
    error::{AddressError, ConnectFailure, PasswordAdvice},
    password::PasswordOrigin,
    tls::{EncryptedStream, PostgresTls, TlsFailure, TlsHandshake},
};
