//! Ciphertext: how it is made, laid out, recognised and opened.
//!
//! AES-256-GCM, with a key of its own for every sealing: HKDF-SHA256 expands the tenant's data key with 24
//! random bytes. Nothing is ever encrypted twice under one key, so there is no number of sealings after which
//! random nonces could meet, and the nonce itself is constant.
//!
//! | Bytes | What |
//! | --- | --- |
//! | 7 | the mark |
//! | 1 | the version of this layout |
//! | 4 | the version of the data key |
//! | 24 | the salt |
//! | as many as were sealed | ciphertext |
//! | 16 | the tag, over all of that and the [`Binding`] |

use std::fmt;

use bytes::{Bytes, BytesMut};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk},
    rand::{SecureRandom, SystemRandom},
};

use crate::binding::Binding;

/// What no request, step or wrapped key begins with by chance.
const MARK: &[u8; 7] = b"\0hapax\x1a";
/// The layout this code writes. It reads every version up to it.
const FORMAT: u8 = 1;
const SALT_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = MARK.len() + 1 + 4;
/// How much longer sealed bytes are than what was sealed.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + SALT_BYTES + TAG_BYTES;
/// Keeps the keys derived here apart from all others.
const DOMAIN: &[u8] = b"hapax sealing 1";

/// A key that seals and opens.
pub(crate) struct SealingKey {
    /// Which of its tenant's keys.
    version: u32,
    root: Prk,
}

impl SealingKey {
    /// How many bytes a key has.
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn new(version: u32, bytes: &[u8; Self::BYTES]) -> Self {
        // The bytes are random already: nothing has to be extracted from them.
        Self { version, root: Prk::new_less_safe(HKDF_SHA256, bytes) }
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The parts, one after another, as ciphertext that opens under the same binding alone.
    pub(crate) fn seal(&self, binding: &Binding, parts: &[&[u8]]) -> Result<Bytes, NotSealed> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| NotSealed)?;
        let mut sealed = BytesMut::with_capacity(OVERHEAD_BYTES + len);
        sealed.extend_from_slice(MARK);
        sealed.extend_from_slice(&[FORMAT]);
        sealed.extend_from_slice(&self.version.to_be_bytes());
        let bound = binding.with_header(&sealed);
        sealed.extend_from_slice(&salt);
        parts.iter().for_each(|part| sealed.extend_from_slice(part));
        let key = self.derive(&salt).ok_or(NotSealed)?;
        let text = &mut sealed[HEADER_BYTES + SALT_BYTES..];
        let tag = key.seal_in_place_separate_tag(only_nonce(), Aad::from(bound), text);
        sealed.extend_from_slice(tag.map_err(|_| NotSealed)?.as_ref());
        Ok(sealed.freeze())
    }

    /// What was sealed; [`NotOpened`] unless key, binding and every byte are those it was sealed with.
    pub(crate) fn open(&self, binding: &Binding, sealed: &[u8]) -> Result<Bytes, NotOpened> {
        let (header, rest) = sealed.split_at_checked(HEADER_BYTES).ok_or(NotOpened)?;
        let (salt, text) = rest.split_first_chunk::<SALT_BYTES>().ok_or(NotOpened)?;
        let key = self.derive(salt).ok_or(NotOpened)?;
        let mut text = BytesMut::from(text);
        let bound = binding.with_header(header);
        let opened = key.open_in_place(only_nonce(), Aad::from(bound), &mut text);
        let len = opened.map_err(|_| NotOpened)?.len();
        text.truncate(len);
        Ok(text.freeze())
    }

    /// The key of one sealing.
    fn derive(&self, salt: &[u8; SALT_BYTES]) -> Option<LessSafeKey> {
        let derived = self.root.expand(&[DOMAIN, salt], &AES_256_GCM).map(UnboundKey::from);
        derived.ok().map(LessSafeKey::new)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Each key is used once.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// Which data key sealed these bytes; `None` if they are not sealed.
pub(crate) fn sealed_with(bytes: &[u8]) -> Option<Result<u32, UnknownLayout>> {
    let rest = bytes.strip_prefix(MARK.as_slice())?;
    Some(match rest.split_first() {
        Some((&FORMAT, rest)) => {
            let version = rest.first_chunk().map(|version| u32::from_be_bytes(*version));
            version.ok_or(UnknownLayout { found: FORMAT })
        }
        Some((found, _)) => Err(UnknownLayout { found: *found }),
        None => Err(UnknownLayout { found: 0 }),
    })
}

/// Whether these bytes, of a stored request or a step's result, are ciphertext.
///
/// ```
/// assert!(!hapax_encryption::is_sealed(b"{\"amount\":100}"));
/// ```
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK)
}

/// Nothing could be sealed: the operating system gave no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing could be encrypted: the operating system gave no randomness")]
pub struct NotSealed;

/// What is stored is not what was sealed, or not with this key, or in another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the ciphertext was altered, moved to another place, or made with another key")]
pub struct NotOpened;

/// A layout that this version does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the ciphertext has layout {found}; this version reads up to {FORMAT}")]
pub(crate) struct UnknownLayout {
    /// The layout found.
    pub(crate) found: u8,
}

impl UnknownLayout {
    /// Whether a newer version wrote it.
    pub(crate) fn is_newer(self) -> bool {
        self.found > FORMAT
    }
}

#[cfg(test)]
mod tests {
    use hapax_core::{Fingerprint, OperationId};

    use super::*;

    fn key(version: u32) -> SealingKey {
        SealingKey::new(version, &[7; 32])
    }

    fn binding(id: u8) -> Binding {
        let fingerprint = Fingerprint::from_bytes([1; Fingerprint::BYTES]);
        Binding::request(OperationId::from_bytes([id; 16]), &fingerprint)
    }

    #[test]
    fn what_was_sealed_is_opened_and_twice_the_same_looks_different() {
        for text in [&b""[..], b"paid", &[0; 100_000]] {
            let sealed = key(3).seal(&binding(1), &[text]).unwrap();
            assert_eq!(sealed.len(), text.len() + OVERHEAD_BYTES);
            assert_eq!(sealed_with(&sealed), Some(Ok(3)));
            assert_eq!(key(3).open(&binding(1), &sealed).unwrap(), text);
            assert_ne!(key(3).seal(&binding(1), &[text]).unwrap(), sealed);
        }
    }

    #[test]
    fn no_bit_can_be_changed_and_nothing_can_be_moved() {
        let sealed = key(1).seal(&binding(1), &[b"paid"]).unwrap();
        for at in 0..sealed.len() * 8 {
            let mut altered = sealed.to_vec();
            altered[at / 8] ^= 1 << (at % 8);
            assert_eq!(key(1).open(&binding(1), &altered), Err(NotOpened), "bit {at}");
        }
        for len in 0..sealed.len() {
            assert_eq!(key(1).open(&binding(1), &sealed[..len]), Err(NotOpened), "{len} bytes");
        }
        assert_eq!(key(1).open(&binding(2), &sealed), Err(NotOpened));
        assert_eq!(SealingKey::new(1, &[8; 32]).open(&binding(1), &sealed), Err(NotOpened));
    }

    #[test]
    fn an_unknown_layout_is_not_taken_for_clear_text() {
        let mut sealed = key(1).seal(&binding(1), &[b"paid"]).unwrap().to_vec();
        sealed[MARK.len()] = FORMAT + 1;
        let unknown = sealed_with(&sealed).unwrap().unwrap_err();
        assert!(unknown.is_newer());
        assert_eq!(sealed_with(&sealed[..MARK.len() + 3]), Some(Err(unknown)));
        assert_eq!(sealed_with(b"paid"), None);
    }
}
