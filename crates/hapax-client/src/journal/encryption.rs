//! What a journal is encrypted with, and how its file keeps its key.

use std::sync::Arc;

use bytes::Bytes;
use hapax_core::store::WrappedKey;
use hapax_encryption::{FileKey, FileKeyError, LocalMasterKey, MasterKey as _};
use hapax_sqlite_file::DatabaseFile;
use rusqlite::Connection;

use super::error::OpenError;

const SCHEMA: &str = include_str!("encryption.sql");
const FIND: &str = "SELECT master, wrapped FROM hapax_journal_key";
const INSERT: &str = "INSERT INTO hapax_journal_key (one, master, wrapped) VALUES (1, ?1, ?2)";
const UPDATE: &str = "UPDATE hapax_journal_key SET master = ?1, wrapped = ?2";

/// What a journal is encrypted with: a master key that is not in its file, and those it follows.
///
/// Requests and answers are sealed from the first opening with it on; what was written before stays
/// readable, and goes with its retention. Without the key the file is refused.
///
/// ```
/// use hapax_client::journal::{Journal, JournalEncryption, JournalOptions, LocalMasterKey};
///
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// # let (text, before) = ("5f".repeat(32), "07".repeat(32));
/// // What `openssl rand -base64 32` prints, from wherever secrets are kept.
/// let encryption = JournalEncryption::new(LocalMasterKey::parse(&text)?)
///     // Until every journal was opened with the new one once.
///     .following(LocalMasterKey::parse(&before)?);
/// let options = JournalOptions { encryption: Some(encryption), ..JournalOptions::default() };
/// let journal = Journal::open(&file, options)?;
/// # drop(journal);
/// assert!(Journal::open(&file, JournalOptions::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct JournalEncryption {
    master: Arc<LocalMasterKey>,
    previous: Vec<Arc<LocalMasterKey>>,
}

/// What the key of a file is under.
pub(super) enum FoundKey {
    /// The present master key.
    Present(FileKey),
    /// One that it follows: it has to be wrapped anew.
    Previous,
}

impl JournalEncryption {
    /// Under this master key.
    pub fn new(master: LocalMasterKey) -> Self {
        Self { master: Arc::new(master), previous: Vec::new() }
    }

    /// The same, after another master key: a journal that is under that one is opened with it once
    /// more, and is under the present one from then on.
    #[must_use]
    pub fn following(mut self, previous: LocalMasterKey) -> Self {
        self.previous.push(Arc::new(previous));
        self
    }

    /// The key of an encrypted file.
    pub(super) fn find(
        &self,
        file: &DatabaseFile,
        connection: &Connection,
    ) -> Result<FoundKey, OpenError> {
        let wrapped = wrapped_key(file, connection)?;
        if wrapped.master != self.master.name() {
            return self.followed(file, &wrapped).map(|_| FoundKey::Previous);
        }
        let key = FileKey::unwrap(&self.master, &wrapped);
        key.map(FoundKey::Present).map_err(|source| unusable(file, source))
    }

    /// Makes a journal an encrypted one.
    pub(super) fn begin(
        &self,
        file: &DatabaseFile,
        connection: &Connection,
    ) -> Result<FileKey, OpenError> {
        let refused = |source| file.refused(source);
        let drawn = FileKey::draw(&self.master);
        let (key, wrapped) = drawn.map_err(|source| unusable(file, source))?;
        connection.execute_batch(SCHEMA).map_err(refused)?;
        connection.execute(INSERT, (&wrapped.master, &wrapped.bytes[..])).map_err(refused)?;
        Ok(key)
    }

    /// Puts the key of an encrypted file under the present master key.
    pub(super) fn follow(
        &self,
        file: &DatabaseFile,
        connection: &Connection,
    ) -> Result<FileKey, OpenError> {
        let wrapped = wrapped_key(file, connection)?;
        let from = self.followed(file, &wrapped)?;
        let rewrapped = FileKey::rewrap(from, &self.master, &wrapped);
        let wrapped = rewrapped.map_err(|source| unusable(file, source))?;
        let written = connection.execute(UPDATE, (&wrapped.master, &wrapped.bytes[..]));
        written.map_err(|source| file.refused(source))?;
        FileKey::unwrap(&self.master, &wrapped).map_err(|source| unusable(file, source))
    }

    /// The master key before the present one that the file is under.
    fn followed(
        &self,
        file: &DatabaseFile,
        wrapped: &WrappedKey,
    ) -> Result<&LocalMasterKey, OpenError> {
        let known = self.previous.iter().find(|master| master.name() == wrapped.master);
        known.map(AsRef::as_ref).ok_or_else(|| OpenError::OtherMasterKey {
            path: file.path().to_owned(),
            needed: wrapped.master.clone(),
            given: self.master.name().to_owned(),
        })
    }
}

/// The refusal of an encrypted file to whoever brings no key.
pub(super) fn locked(file: &DatabaseFile, connection: &Connection) -> OpenError {
    match wrapped_key(file, connection) {
        Ok(wrapped) => {
            OpenError::Encrypted { path: file.path().to_owned(), needed: wrapped.master }
        }
        Err(error) => error,
    }
}

fn wrapped_key(file: &DatabaseFile, connection: &Connection) -> Result<WrappedKey, OpenError> {
    let found = connection.query_row(FIND, [], |row| {
        Ok(WrappedKey { master: row.get(0)?, bytes: Bytes::from(row.get::<_, Vec<u8>>(1)?) })
    });
    Ok(found.map_err(|source| file.refused(source))?)
}

fn unusable(file: &DatabaseFile, source: impl Into<FileKeyError>) -> OpenError {
    OpenError::Key { path: file.path().to_owned(), source: source.into() }
}
