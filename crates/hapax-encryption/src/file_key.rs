use bytes::Bytes;
use hapax_core::store::WrappedKey;
use ring::rand::{SecureRandom, SystemRandom};

use crate::{
    binding::Binding,
    master_key::{DataKeyBytes, LocalMasterKey, MasterKey as _},
    sealing::{NotOpened, NotSealed, SealingKey},
};

/// The key of one file, such as a client's journal: the file keeps it, wrapped by a master key that is
/// elsewhere.
///
/// ```
/// use hapax_encryption::{FileKey, LocalMasterKey};
///
/// let master = LocalMasterKey::from_bytes(&[7; 32]);
/// let (key, wrapped) = FileKey::draw(&master)?;
/// let sealed = key.seal(&[b"row 1", b"body"], &[b"{\"amount\":100}"])?;
///
/// let again = FileKey::unwrap(&master, &wrapped)?;
/// assert_eq!(again.open(&[b"row 1", b"body"], &sealed)?, &b"{\"amount\":100}"[..]);
/// assert!(again.open(&[b"row 2", b"body"], &sealed).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileKey(SealingKey);

/// A file has one data key: a new master key wraps it anew.
const VERSION: u32 = 1;

impl FileKey {
    /// A new key, and what the file keeps of it.
    pub fn draw(master: &LocalMasterKey) -> Result<(Self, WrappedKey), NotSealed> {
        let mut bytes = DataKeyBytes::default();
        SystemRandom::new().fill(&mut *bytes).map_err(|_| NotSealed)?;
        let wrapped = wrap(master, &bytes)?;
        Ok((Self(SealingKey::new(VERSION, &bytes)), wrapped))
    }

    /// The key that the file keeps.
    pub fn unwrap(master: &LocalMasterKey, wrapped: &WrappedKey) -> Result<Self, NotOpened> {
        let bytes = master.unwrap_at(&Binding::file_key(), &wrapped.bytes)?;
        Ok(Self(SealingKey::new(VERSION, &bytes)))
    }

    /// The same key under another master key. What it sealed stays as it is.
    pub fn rewrap(
        from: &LocalMasterKey,
        to: &LocalMasterKey,
        wrapped: &WrappedKey,
    ) -> Result<WrappedKey, FileKeyError> {
        let bytes = from.unwrap_at(&Binding::file_key(), &wrapped.bytes)?;
        Ok(wrap(to, &bytes)?)
    }

    /// The parts, one after another, as ciphertext that opens in the same place alone.
    pub fn seal(&self, place: &[&[u8]], parts: &[&[u8]]) -> Result<Bytes, NotSealed> {
        self.0.seal(&Binding::place(place), parts)
    }

    /// What was sealed in this place.
    pub fn open(&self, place: &[&[u8]], sealed: &[u8]) -> Result<Bytes, NotOpened> {
        self.0.open(&Binding::place(place), sealed)
    }
}

fn wrap(master: &LocalMasterKey, bytes: &DataKeyBytes) -> Result<WrappedKey, NotSealed> {
    let wrapped = master.wrap_at(&Binding::file_key(), bytes)?;
    Ok(WrappedKey { master: master.name().to_owned(), bytes: wrapped })
}

/// Why the key of a file is not under another master key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileKeyError {
    /// The file does not hold what that master key wrapped.
    #[error(transparent)]
    NotOpened(#[from] NotOpened),
    /// There is no randomness to wrap it with.
    #[error(transparent)]
    NotSealed(#[from] NotSealed),
}
