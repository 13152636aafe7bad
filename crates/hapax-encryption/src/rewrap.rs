//! Puts the data keys of all tenants under another master key.

use hapax_core::store::{DataKeyState, KeyStorage, WrappedKey};

use crate::encryption::{Encryption, EncryptionError};

/// Keys looked at in one call.
const PAGE_KEYS: usize = 500;

/// What came of a rewrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// Keys that are now under the present master key.
    pub rewrapped: u64,
    /// Keys that were before.
    pub kept: u64,
    /// Keys that are erased.
    pub erased: u64,
}

/// Wraps every data key anew that a previous master key wrapped, one by one, while the store is in use.
///
/// Each key is under the old master key or under the new one at any time, so it may be stopped anywhere and
/// run again. Once it has returned, the previous master keys are no longer needed by this store.
///
/// ```
/// use hapax_core::{Salt, Timestamp, memory};
/// use hapax_encryption::{Encryption, LocalMasterKey, rewrap};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let (new, old) = (LocalMasterKey::from_bytes(&[2; 32]), LocalMasterKey::from_bytes(&[1; 32]));
/// let done = rewrap(&store, &Encryption::new(new).following(old)).await?;
/// assert_eq!(done.rewrapped, 0, "nobody had a key yet");
/// # Ok(())
/// # }
/// ```
pub async fn rewrap(
    storage: &impl KeyStorage,
    encryption: &Encryption,
) -> Result<Rewrapped, EncryptionError> {
    let mut done = Rewrapped::default();
    let mut after = None;
    loop {
        let page = storage.list_data_keys(after, PAGE_KEYS).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for key in page {
            let DataKeyState::Kept(seen) = key.state else {
                done.erased += 1;
                continue;
            };
            if seen.master == encryption.master.name() {
                done.kept += 1;
                continue;
            }
            let Some(previous) = encryption.master_named(&seen.master) else {
                let given = encryption.master.name().to_owned();
                return Err(EncryptionError::OtherMaster { name: seen.master, keys: 1, given });
            };
            let bytes = previous.unwrap(&key.id, &seen.bytes).await?;
            let bytes = encryption.master.wrap(&key.id, &bytes).await?;
            let wrapped = WrappedKey { master: encryption.master.name().to_owned(), bytes };
            // Whoever was faster has rewrapped or erased it.
            if storage.rewrap_data_key(key.id, seen, wrapped).await? {
                done.rewrapped += 1;
            }
        }
    }
    encryption_is_alone(storage, encryption).await?;
    Ok(done)
}

/// Whether the previous master keys are needed no more: a process that was not told of the new one may have
/// made keys meanwhile.
async fn encryption_is_alone(
    storage: &impl KeyStorage,
    encryption: &Encryption,
) -> Result<(), EncryptionError> {
    let alone = Encryption { previous: Vec::new(), ..encryption.clone() };
    alone.fits(storage).await
}
