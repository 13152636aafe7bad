//! What a request says, read before anything is run: its route, whose it is, its key and its body.

pub(crate) mod account;
pub(crate) mod arrival;
pub(crate) mod caller_signals;
pub(crate) mod cors;
pub(crate) mod credential;
pub(crate) mod derived_key;
pub(crate) mod drain;
pub(crate) mod front;
pub(crate) mod headers;
pub(crate) mod key;
pub(crate) mod key_format;
pub(crate) mod percent;
pub(crate) mod prefer;
pub(crate) mod repeatability;
pub(crate) mod request_body;
pub(crate) mod resumed_body;
pub(crate) mod room;
pub(crate) mod route;
pub mod stored_request;
pub(crate) mod target;
pub(crate) mod tenancy;
pub(crate) mod treatment;
pub(crate) mod worth;
