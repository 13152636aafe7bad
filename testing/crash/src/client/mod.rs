//! The same for the client: killed at every write of its journal, one effect for every operation.
//!
//! - [`victim`]: a process that sends named operations by a real client with a journal, until it
//!   dies;
//! - [`PaymentServer`]: answers them, once per key, and misbehaves by a seeded dice ([`Mishap`]);
//!   its [`ServerBooks`] keep what it saw and what it did;
//! - [`ClientHunt`]: kills one victim after the other on the same journal, lets the last one finish,
//!   and checks;
//! - [`check`]: what must be true of every operation afterwards.

mod args;
mod books;
pub mod check;
mod episode;
mod facts;
mod hunt;
mod mishap;
mod report;
mod server;
mod strike;
mod told;
pub mod victim;

pub use self::{
    args::{ClientVictimArgs, VictimTask},
    books::{SeenCall, ServerBooks},
    hunt::{ClientHunt, ClientMistake},
    mishap::Mishap,
    report::ClientReport,
    server::{PaymentServer, ServerManners},
    told::Told,
};
