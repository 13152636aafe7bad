//! What became of every operation, on disk before the first byte is sent.
//!
//! A [`Journal`] is one SQLite file. Before a request leaves, [`Journal::begin`] writes it down
//! whole, with the key it is sent with; when it is over, [`Journal::settle`] writes down how it
//! ended. Whoever finds the file after a crash, a reboot or a pulled plug knows what may have been
//! sent and not answered, and can finish it with the same key, so that it still happens once.
//!
//! | State | Meaning | The same name and request again |
//! | --- | --- | --- |
//! | `pending` | somebody pursues it, or should | held while the lease lasts; then granted, same key |
//! | `done` | the answer said yes | the recorded answer, nothing is sent |
//! | `refused` | the answer said no | the recorded answer, nothing is sent |
//! | `unknown` | it may have happened, and nobody said | granted: asked again with the same key |
//! | `gave_up` | no attempt can have had an effect | granted: asked again with the same key |
//!
//! The same name with another request is refused in every state. Requests are the same if method,
//! URL, content type and body are; other headers may differ. Names are forgotten by
//! [`Journal::purge`] when they were `done`, `refused` or `gave_up` for longer than the retention.
//! What is `pending` or `unknown` stays until it is finished or a person forgets it.
//!
//! # Several processes
//!
//! Any number of processes on one machine share a journal. Who pursues an operation has a *lease*,
//! renewed while it lives; a lease that has ended lets the next one take over. That is only about
//! not being idle: two owners at once would send the same key twice. The *fence*, which grows with
//! every taking up, decides whose word counts: `refused`, `unknown` and `gave_up` are believed of the
//! current owner alone. A yes is a yes whoever heard it. The first answer stays.
//!
//! # Time
//!
//! Leases, deadlines and retention count on the clock that runs since the machine was started, so
//! setting the wall clock changes none of them. A reboot ends all leases; deadlines then go on by
//! the wall clock, which never adds less than the time since that start ([`Moment::since`]).
//!
//! # Crashes
//!
//! What is answered is on disk: every transaction is synced, and what is asked for at the same time
//! shares one. A row that is not what was written is an error that names the operation, never a
//! guess, and is never written over. Credentials are not kept unless asked for
//! ([`JournalCredentials`]), and the file is its owner's alone.
//!
//! With [`JournalOptions::encryption`] what was sent and answered is sealed as well (AES-256-GCM, bound
//! to its row): queries of URLs, headers, bodies, answers, and reasons. Names, keys, methods, URLs up to
//! their query, states and times stay clear, because rows are found by them.
//!
//! ```
//! # use std::time::Duration;
//! # use hapax_client::journal::*;
//! # use hapax_core::{Key, Outcome};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("client.db");
//! let journal = Journal::open(path, JournalOptions::default())?;
//! let request = JournalRequest::new(
//!     http::Method::POST,
//!     "https://api.example.com/charges".parse()?,
//!     http::HeaderMap::new(),
//!     "{\"amount\":100}".into(),
//!     JournalCredentials::Withhold,
//! )?;
//! let (name, key) = (Name::parse("charge-order-42")?, Key::parse("9f1c2d")?);
//! let begin = Begin::new(name.clone(), key, request, Duration::from_secs(60));
//! let PursuitAdmission::Granted(granted) = journal.begin(begin).await? else { return Ok(()) };
//!
//! // ... it is sent with `granted.hold.key()`, and answered with 201 ...
//! journal.settle(&granted.hold, 1, PursuitEnd::Done(Outcome::bare(201))).await?;
//!
//! let found = journal.find(&name).await?.map(|entry| entry.state.tag());
//! assert_eq!(found, Some(EntryStateTag::Done));
//! # Ok(())
//! # }
//! ```

mod answer;
mod connect;
mod contents;
mod encryption;
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
mod transaction;
mod work;

pub use hapax_encryption::{FileKeyError, InvalidMasterKey, LocalMasterKey, NotOpened, NotSealed};
pub use hapax_sqlite_file::{Cause, FileError};

pub use self::{
    answer::outcome,
    encryption::JournalEncryption,
    entry::{EntryState, EntryStateTag, EntrySummary, JournalEntry, LastProgress, OperationHold},
    error::{JournalError, OpenError, UnreadableEntry},
    handle::{Journal, JournalStats},
    name::Name,
    options::{InvalidOptions, JournalOptions},
    place::PLACES,
    request::{
        InvalidJournalRequest, JournalCredentials, JournalRequest, RequestDigest, URL_BYTES_MAX,
        is_credential,
    },
    rule::{
        Begin, OwnerWriteResult, PursuitAdmission, PursuitEnd, PursuitGrant, PursuitProgress, Sent,
        TakeUp,
    },
    time::{Boot, JournalClock, Moment},
    work::{EntryFilter, EntryPosition, Force, Forgotten, ListedEntry},
};
