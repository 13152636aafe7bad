use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hapax_core::store::DataKeyId;
use ring::hmac;
use zeroize::Zeroizing;

use super::{DataKeyBytes, MasterKey, MasterKeyError, Wrapping};
use crate::{
    binding::Binding,
    sealing::{NotOpened, NotSealed, SealingKey},
};

/// A master key in the memory of this process: thirty-two random bytes from a file or a variable.
///
/// ```
/// use hapax_encryption::{LocalMasterKey, MasterKey};
///
/// // What `openssl rand -hex 32` or `openssl rand -base64 32` prints.
/// let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// let key = LocalMasterKey::parse(text)?;
/// assert!(key.name().starts_with("local:"));
/// assert!(LocalMasterKey::parse("a password").is_err());
/// # Ok::<(), hapax_encryption::InvalidMasterKey>(())
/// ```
pub struct LocalMasterKey {
    name: String,
    key: SealingKey,
}

/// Keeps the names of keys apart from whatever else is derived from them.
const NAME_DOMAIN: &[u8] = b"hapax master key name 1";

impl LocalMasterKey {
    /// The key that is written as 64 hexadecimal digits or as base64, with or without a line break.
    pub fn parse(text: &str) -> Result<Self, InvalidMasterKey> {
        let text = text.trim_ascii();
        let bytes = Zeroizing::new(match text.len() {
            HEX_DIGITS => hex(text).ok_or(InvalidMasterKey)?,
            _ => BASE64_STANDARD.decode(text).map_err(|_| InvalidMasterKey)?,
        });
        let bytes: &[u8; SealingKey::BYTES] =
            bytes.as_slice().try_into().map_err(|_| InvalidMasterKey)?;
        Ok(Self::from_bytes(bytes))
    }

    /// The key with these bytes, which must be random.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), NAME_DOMAIN);
        let digits: String = tag.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: format!("local:{digits}"), key: SealingKey::new(0, bytes) }
    }

    pub(crate) fn wrap_at(
        &self,
        binding: &Binding,
        key: &DataKeyBytes,
    ) -> Result<Bytes, NotSealed> {
        self.key.seal(binding, &[&key[..]])
    }

    pub(crate) fn unwrap_at(
        &self,
        binding: &Binding,
        wrapped: &[u8],
    ) -> Result<DataKeyBytes, NotOpened> {
        let bytes = self.key.open(binding, wrapped)?;
        // The buffer is nobody else's, so it can be wiped once the key is taken from it.
        let bytes = Zeroizing::new(Vec::from(bytes));
        let key = bytes.as_slice().try_into().map_err(|_| NotOpened)?;
        Ok(Zeroizing::new(key))
    }

    fn refused(&self, cause: impl std::error::Error + Send + Sync + 'static) -> MasterKeyError {
        MasterKeyError::Refused { name: self.name.clone(), cause: Box::new(cause) }
    }
}

const HEX_DIGITS: usize = 2 * SealingKey::BYTES;

fn hex(text: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks_exact(2).map(pair).collect()
}

impl MasterKey for LocalMasterKey {
    fn name(&self) -> &str {
        &self.name
    }

    fn wrap<'a>(&'a self, id: &'a DataKeyId, key: &'a DataKeyBytes) -> Wrapping<'a, Bytes> {
        let wrapped = self.wrap_at(&Binding::data_key(id), key).map_err(|cause| {
            let name = self.name.clone();
            MasterKeyError::Unavailable { name, cause: Box::new(cause) }
        });
        Box::pin(std::future::ready(wrapped))
    }

    fn unwrap<'a>(&'a self, id: &'a DataKeyId, wrapped: &'a [u8]) -> Wrapping<'a, DataKeyBytes> {
        let opened = self.unwrap_at(&Binding::data_key(id), wrapped);
        Box::pin(std::future::ready(opened.map_err(|cause| self.refused(cause))))
    }
}

impl fmt::Debug for LocalMasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalMasterKey").field(&self.name).finish()
    }
}

/// The text is no master key. Never repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is no master key: write 32 random bytes as 64 hexadecimal digits or as base64, such as \
     `openssl rand -base64 32` prints"
)]
pub struct InvalidMasterKey;

#[cfg(test)]
mod tests {
    use hapax_core::Tenant;

    use super::*;

    fn id(tenant: &str, version: u32) -> DataKeyId {
        DataKeyId { tenant: Tenant::parse(tenant).unwrap(), version }
    }

    #[tokio::test]
    async fn a_data_key_is_unwrapped_by_its_own_master_key_for_its_own_tenant_alone() {
        let (master, other) =
            (LocalMasterKey::from_bytes(&[1; 32]), LocalMasterKey::from_bytes(&[2; 32]));
        let key = Zeroizing::new([9; 32]);
        let wrapped = master.wrap(&id("acme", 1), &key).await.unwrap();
        assert_eq!(*master.unwrap(&id("acme", 1), &wrapped).await.unwrap(), *key);
        for (master, id) in
            [(&other, id("acme", 1)), (&master, id("umbrella", 1)), (&master, id("acme", 2))]
        {
            let refused = master.unwrap(&id, &wrapped).await.unwrap_err();
            assert!(matches!(refused, MasterKeyError::Refused { .. }), "{refused}");
        }
        assert_ne!(master.name(), other.name());
    }

    #[test]
    fn both_spellings_are_the_same_key_and_anything_else_is_none() {
        let hex = LocalMasterKey::parse(&"07".repeat(32)).unwrap();
        let base64 = LocalMasterKey::parse(&format!("{}\n", BASE64_STANDARD.encode([7; 32])));
        assert_eq!(hex.name(), base64.unwrap().name());
        for text in ["", "07", "a password of some length", &"zz".repeat(32), &"07".repeat(33)] {
            assert!(LocalMasterKey::parse(text).is_err(), "{text}");
        }
    }
}
