//! The same for the client: killed at every write of its journal, one effect for every operation.
//!
//! - [`victim`]: a process that sends named operations by a real client with a journal, until it
//!   dies;
//! - [`Server`]: answers them, once per key, and misbehaves by a seeded dice ([`Mishap`]); its
//!   [`Books`] keep what it saw and what it did;
//! - [`Drive`]: kills one victim after the other on the same journal, lets the last one finish, and
//!   checks;
//! - [`check`]: what must be true of every operation afterwards.

mod books;
pub mod check;
mod drive;
mod episode;
mod facts;
mod mishap;
mod orders;
mod server;
mod strike;
mod summary;
mod told;
pub mod victim;

pub use self::{
    books::{Books, Seen},
    drive::{Broken, Drive},
    mishap::Mishap,
    orders::{Orders, Task},
    server::{Manners, Server},
    summary::Summary,
    told::Told,
};
