//! How programs of this repository talk to people in a terminal; nothing here is for others.

use std::error::Error;

use hapax_core::OneLine;

pub mod page;
pub mod plot;
pub mod table;

/// An error and its causes on one line, without SQLite's numbers: its words are told.
pub fn sentence(error: &dyn Error) -> String {
    OneLine::of(error).skipping(|cause| cause.is::<rusqlite::ffi::Error>()).to_string()
}
