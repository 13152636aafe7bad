//! What became of every operation, on disk before the first byte is sent.

mod book;
mod connect;
mod entry;
mod error;
mod handle;
mod name;
mod options;
mod place;
mod request;
mod row;
mod rule;
mod time;
mod work;
mod writer;

pub use self::{
    entry::{Entry, Hold, Noted, State, StateTag, Summary},
    error::{Cause, JournalError, OpenError, Unreadable},
    handle::{Journal, JournalStats},
    name::Name,
    options::{InvalidOptions, JournalOptions},
    place::PLACES,
    request::{CREDENTIALS, Credentials, Digest, InvalidRequest, Request, URL_BYTES_MAX},
    rule::{Begin, Begun, End, Granted, Kept, Progress, Sent, TakeUp},
    time::{Boot, Clock, Moment},
    work::{Filter, Force, Forgotten, Listed, Position},
};
