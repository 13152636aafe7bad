//! Operations as a log, and how rows are found in it by their id.
//!
//! Rows stand in the order of their claims (`hapax_claims`) and of their ends (`hapax_ends`), so a batch
//! writes few pages, however many rows there are. What has not ended is in `hapax_open`.
//!
//! - `find`: an id is looked for in runs, each of which lists the ids of consecutive rows in order, and in
//!   the few rows after the last run;
//! - `runs` and `merge`: whoever appends rows writes runs in passing, and merges eight neighbours into one, a few pages
//!   in each commit; everything is in the transaction, so every snapshot has runs that fit its rows;
//! - `write`: appends, changes and removes rows;
//! - `session`: the store's threads and both drivers speak to these tables through it.
//!
//! A row's number is never given twice, and its id never changes. That is what makes it safe to remember
//! in memory where ids are (`directory`): what is remembered may be gone, but never be another's.

mod chunk;
mod find;
mod listing;
mod merge;
mod runs;
mod session;
mod write;

pub(crate) use self::{
    chunk::{RunEntry, prefix},
    find::{find, in_runs},
    listing::IdWalk,
    merge::{forget_dead, index_rows, tidy_runs},
    runs::{entries_of, is_indexed, keys_about, live_runs, tail, whole_tail},
    session::{LogSession, ready},
    write::{append_at, newest_row, remove, remove_due, replace, rewrite},
};
