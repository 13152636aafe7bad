//! The embedded Hapax store: one SQLite file, one writer thread, group commit; and the same promise
//! inside transactions of your own SQLite file.
//!
//! - [`once`] runs an operation in a transaction of your own `rusqlite` connection, `sqlx` (a
//!   feature) in one of your pool: your writes, [`emit`]ted events and the outcome commit together;
//! - [`inbox`] has what became of messages, in the transaction of their effect;
//! - [`natural`] has writes that are harmless to repeat without a key.
//!
//! [`Store::open`] is the way in to the store. Behind it:
//!
//! - `store`: the async face, which hands work to threads and waits for their answers;
//! - `writer`: what the one thread that writes does, which is `hapax-sqlite-file`'s: it takes everything
//!   that is queued, performs it in one transaction and pays for one sync to disk;
//! - `commit` and `retire`: what a transaction does, deciding with `hapax_core::apply`; `hot_path`: the writes
//!   of an undisturbed operation; `ranges`: when a purge has to look where;
//! - `reader`: threads that read snapshots while the writer writes; `listing`: pages in order of ids;
//! - `log`: rows in order of time, and how the file says where an id is; `directory`: the same, in memory;
//! - `outbox`: [`emit`]ted events, and the store as the log a relay reads;
//! - `session`: what is said through `rusqlite`, and what comes back; `row`: a record as columns; `notes`: what people did to records;
//! - `migrate`: the schema, also for a database of your own; `script`: as SQL; `connect`: how the file is opened;
//! - `error`: what can go wrong, and what to do about it.
//!
//! People can look at the file with any SQLite client: the view `hapax_operations_readable` shows
//! states as words, times as ISO text, and statuses and bodies as they were answered;
//! `hapax_notes_readable` shows what people did.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("hapax.db");
//! let store = hapax_sqlite::Store::open(&path, hapax_sqlite::Options::default())?;
//! # drop(store);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock_mark;
mod commit;
mod connect;
mod data_keys;
mod directory;
mod error;
mod hot_path;
pub mod inbox;
mod incarnation;
mod key;
mod listing;
mod log;
mod migrate;
pub mod natural;
mod notes;
mod options;
mod outbox;
mod position;
mod ranges;
mod reader;
mod retire;
mod row;
mod script;
mod session;
#[cfg(feature = "sqlx")]
pub mod sqlx;
mod steps;
mod store;
pub mod transaction;
mod writer;

pub use hapax_core::transaction::{Answered, Fate};
pub use hapax_sqlite_file::{Durability, FileError};

pub use self::{
    error::{MigrateError, OpenError},
    incarnation::{mark_copy, past},
    migrate::migrate,
    options::{Clock, Options},
    outbox::emit,
    script::{VERSION, schema_version, script},
    store::{PLACES, Store},
    transaction::once::{OnceRequest, TransactionOnceError, once},
};
