//! Sealing for a tenant where nothing beside the ciphertext says whose it is: it names its tenant itself.
//!
//! | Bytes | What |
//! | --- | --- |
//! | 1 | the version of this layout |
//! | 2 | how long the name of the tenant is |
//! | as many | the name of the tenant, in the clear |
//! | the rest | what was sealed with a data key of that tenant |

use std::{fmt, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use hapax_core::{StoreError, Tenant, store::KeyStorage};

use crate::{
    binding::Binding,
    data_keys::{DataKeys, OpeningKey},
    encryption::{Encryption, EncryptionError},
    sealing::{self, NotSealed, SealingKey},
};

/// The layout this code writes.
const FORMAT: u8 = 1;

/// The data keys of tenants, for events and messages: the same keys that encrypt what those tenants sent and
/// were answered. Clones share them.
///
/// ```
/// use hapax_core::{Event, Salt, Tenant, Timestamp, memory};
/// use hapax_encryption::{Encryption, LocalMasterKey, TenantKeys};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let encryption = Encryption::new(LocalMasterKey::from_bytes(&[7; 32]));
/// let keys = TenantKeys::new(store, encryption).await?;
///
/// // Before the transaction begins; what is emitted in it is then sealed without waiting for anything.
/// let sealer = keys.sealer(&Tenant::parse("acme")?).await?;
/// let event = sealer.seal(&Event::new("orders.placed", "order-17", r#"{"customer":"ada"}"#)?)?;
/// assert!(event.is_sealed());
/// # Ok(())
/// # }
/// ```
pub struct TenantKeys<K> {
    storage: Arc<K>,
    keys: Arc<DataKeys>,
}

impl<K: KeyStorage> TenantKeys<K> {
    /// The keys that this store keeps, which must be wrapped by the master keys given. Must be called on a
    /// tokio runtime.
    ///
    /// It looks keys up over connections of the store's own, and never over that of a transaction.
    pub async fn new(storage: K, encryption: Encryption) -> Result<Self, EncryptionError> {
        encryption.fits(&storage).await?;
        Ok(Self { storage: Arc::new(storage), keys: DataKeys::start(encryption) })
    }

    /// The key that seals for this tenant.
    pub(crate) async fn to_seal(&self, tenant: &Tenant) -> Result<Arc<SealingKey>, StoreError> {
        self.keys.to_seal(self.storage.as_ref(), tenant).await
    }

    /// The key that sealed for this tenant lately; `None` where the store would have to be asked.
    pub(crate) fn at_hand(&self, tenant: &Tenant) -> Option<Arc<SealingKey>> {
        self.keys.at_hand(tenant)
    }

    /// What was sealed for a tenant that it names itself; `binding` says where.
    pub(crate) async fn open(
        &self,
        sealed: &[u8],
        binding: impl FnOnce(&Tenant) -> Binding,
    ) -> Result<Bytes, Unopened> {
        let (tenant, ciphertext) = addressed(sealed)?;
        let version = match sealing::sealed_with(ciphertext) {
            Some(Ok(version)) => version,
            Some(Err(unknown)) => return Err(Unopened::Never(unknown.to_string())),
            None => return Err(malformed()),
        };
        let found = self.keys.find(self.storage.as_ref(), &tenant, version).await;
        match found.map_err(Unopened::NotNow)? {
            Some(OpeningKey::Usable(key)) => {
                let opened = key.open(&binding(&tenant), ciphertext);
                opened.map_err(|error| Unopened::Never(error.to_string()))
            }
            Some(OpeningKey::Erased) => Err(Unopened::Never(format!(
                "it is encrypted, and the keys of its tenant {} were erased",
                tenant.as_str()
            ))),
            None => Err(Unopened::Never(format!(
                "it is encrypted with data key {version} of the tenant {}, of which the store has no trace",
                tenant.as_str()
            ))),
        }
    }
}

/// The parts, one after another, as ciphertext that names its tenant.
pub(crate) fn seal_for(
    tenant: &Tenant,
    key: &SealingKey,
    binding: &Binding,
    parts: &[&[u8]],
) -> Result<Bytes, NotSealed> {
    let sealed = key.seal(binding, parts)?;
    let name = tenant.as_str().as_bytes();
    let mut addressed = BytesMut::with_capacity(3 + name.len() + sealed.len());
    addressed.put_u8(FORMAT);
    addressed.put_u16(u16::try_from(name.len()).map_err(|_| NotSealed)?);
    addressed.extend_from_slice(name);
    addressed.extend_from_slice(&sealed);
    Ok(addressed.freeze())
}

/// Whose ciphertext it is, by its own account, and the ciphertext.
fn addressed(sealed: &[u8]) -> Result<(Tenant, &[u8]), Unopened> {
    let (format, rest) = sealed.split_first().ok_or_else(malformed)?;
    if *format != FORMAT {
        return Err(Unopened::Never(format!(
            "it is encrypted in layout {format}; this version reads {FORMAT}"
        )));
    }
    let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
    let len = usize::from(u16::from_be_bytes(*len));
    let (name, ciphertext) = rest.split_at_checked(len).ok_or_else(malformed)?;
    let name = std::str::from_utf8(name).map_err(|_| malformed())?;
    Ok((Tenant::parse(name).map_err(|_| malformed())?, ciphertext))
}

/// Why something that is encrypted cannot be read.
#[derive(Debug, Clone)]
pub(crate) enum Unopened {
    /// It never can, because it was altered, moved or erased.
    Never(String),
    /// Its key is not at hand.
    NotNow(StoreError),
}

/// It says that it is encrypted, and is not.
pub(crate) fn malformed() -> Unopened {
    Unopened::Never("it is marked as encrypted, and is not".to_owned())
}

impl<K> Clone for TenantKeys<K> {
    fn clone(&self) -> Self {
        Self { storage: Arc::clone(&self.storage), keys: Arc::clone(&self.keys) }
    }
}

impl<K> fmt::Debug for TenantKeys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantKeys").field("keys", &self.keys).finish_non_exhaustive()
    }
}
