//! What makes two requests the same, as a keyed hash that tells which part differed.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::operation::{OperationId, SignedId, Tenant};

/// Thirty-two random bytes a store was created with, shared by every process on it.
///
/// They key all fingerprints and sign the ids that clients are told, so that nobody outside can
/// compute or probe one.
///
/// ```
/// use hapax_core::{RequestParts, Salt, Tenant};
///
/// let salt = Salt::from_bytes([7; 32]);
/// let key = salt.tenant_key(&Tenant::parse("acme")?);
/// let request = RequestParts { body: b"100", ..RequestParts::default() };
/// assert_eq!(key.fingerprint(&request), key.fingerprint(&request));
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 32]);

impl Salt {
    /// The salt a store kept, or has just drawn.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes a store keeps.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The number of the lock that belongs to a name of a kind. SQL computes it too
    /// (`hapax.lock_number`); whoever does not know the salt cannot.
    ///
    /// ```
    /// use hapax_core::Salt;
    ///
    /// let salt = Salt::from_bytes([7; 32]);
    /// assert_ne!(salt.lock_number("event", "a"), salt.lock_number("operation", "a"));
    /// ```
    pub fn lock_number(&self, kind: &str, name: &str) -> i64 {
        let named = Sha256::new().chain_update(self.0).chain_update(kind).chain_update("\n");
        let digest = named.chain_update(name).finalize();
        let (number, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        i64::from_be_bytes(*number)
    }

    /// The fingerprint key of one tenant.
    pub fn tenant_key(&self, tenant: &Tenant) -> TenantKey {
        let fed = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(self.0).for_each(|(masked, byte)| *masked ^= byte);
            Sha256::new().chain_update(block).chain_update(tenant.as_str()).chain_update("\n")
        };
        let (inner, outer) = (fed(0x36), fed(0x5c));
        TenantKey { post: part_hash(&inner, Part::Method, POST), inner, outer }
    }

    /// The id of an operation as its client is told it.
    pub fn signed(&self, id: OperationId) -> SignedId {
        let whole = self.sign(id);
        let mut tag = [0; SignedId::TAG_BYTES];
        tag.copy_from_slice(&whole[..SignedId::TAG_BYTES]);
        SignedId::new(id, tag)
    }

    /// The id that a client names, if it was told so: `None` if somebody else made it up.
    pub fn verified(&self, signed: &SignedId) -> Option<OperationId> {
        let id = signed.id();
        let right = &self.sign(id)[..SignedId::TAG_BYTES];
        // Compared as hashes: how long that takes says nothing about the tag.
        let hashed = |of: &[u8]| tag(&mac(&self.0), &[b"tag of an id", of]);
        (hashed(right) == hashed(signed.tag())).then_some(id)
    }

    fn sign(&self, id: OperationId) -> [u8; 32] {
        tag(&mac(&self.0), &[b"operation id", id.as_bytes()])
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

/// Makes the fingerprints of one tenant's requests. Worth keeping: deriving it costs as much as
/// using it.
#[derive(Clone)]
pub struct TenantKey {
    /// Hashes parts: keyed with the salt as HMAC is inside, and fed with the tenant.
    inner: Sha256,
    /// Hashes the hashes of all parts: keyed as HMAC is outside, and fed likewise.
    outer: Sha256,
    /// The hash of the method most requests have.
    post: [u8; 32],
}

const POST: &[u8] = b"POST";

impl TenantKey {
    /// The fingerprint of a request.
    pub fn fingerprint(&self, request: &RequestParts<'_>) -> Fingerprint {
        let mut headers = Vec::new();
        for (name, value) in request.headers {
            headers.extend_from_slice(&length(name.len()));
            headers.extend_from_slice(name.as_bytes());
            headers.extend_from_slice(&length(value.len()));
            headers.extend_from_slice(value);
        }
        let hashes = [
            match request.method {
                POST => self.post,
                method => part_hash(&self.inner, Part::Method, method),
            },
            part_hash(&self.inner, Part::Path, request.path),
            part_hash(&self.inner, Part::Query, request.query),
            part_hash(&self.inner, Part::Headers, &headers),
            part_hash(&self.inner, Part::Body, request.body),
        ];
        let whole = self.outer.clone().chain_update(hashes.as_flattened()).finalize();
        let mut bytes = [0; Fingerprint::BYTES];
        bytes[..WHOLE_BYTES].copy_from_slice(&whole[..WHOLE_BYTES]);
        for (at, hash) in hashes.iter().enumerate() {
            let start = WHOLE_BYTES + at * HINT_BYTES;
            bytes[start..start + HINT_BYTES].copy_from_slice(&hash[..HINT_BYTES]);
        }
        Fingerprint(bytes)
    }

    /// What logs call the tenant: the same on every process of a store, and computed by nobody
    /// else.
    pub fn pseudonym(&self) -> String {
        self.fingerprint(&RequestParts::default()).to_string()
    }
}

impl fmt::Debug for TenantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantKey(..)")
    }
}

/// What a front end considers the request. Parts it leaves empty do not tell requests apart.
///
/// ```
/// use hapax_core::{Part, RequestParts, Salt, Tenant};
///
/// let key = Salt::from_bytes([7; 32]).tenant_key(&Tenant::parse("acme")?);
/// let first = RequestParts { path: b"/payments", body: b"100", ..RequestParts::default() };
/// let other = RequestParts { body: b"999", ..first };
/// let difference = key.fingerprint(&first).difference(&key.fingerprint(&other));
/// assert!(difference.is_some_and(|found| found.parts().eq([Part::Body])));
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestParts<'a> {
    /// The method, or the kind of a message.
    pub method: &'a [u8],
    /// The path without the query.
    pub path: &'a [u8],
    /// The query.
    pub query: &'a [u8],
    /// The headers the front end chose, in an order it keeps.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, canonical if the front end made it so.
    pub body: &'a [u8],
}

/// A part of a request that can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The method.
    Method,
    /// The path.
    Path,
    /// The query.
    Query,
    /// One of the chosen headers.
    Headers,
    /// The body.
    Body,
}

impl Part {
    /// All parts, in the order a fingerprint keeps them.
    pub const ALL: [Self; 5] = [Self::Method, Self::Path, Self::Query, Self::Headers, Self::Body];

    /// The word used in problem documents and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Path => "path",
            Self::Query => "query",
            Self::Headers => "headers",
            Self::Body => "body",
        }
    }
}

/// A keyed hash of a request: equal fingerprints mean the same request.
///
/// Sixteen bytes decide equality; four more per part only name what differed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; Self::BYTES]);

const WHOLE_BYTES: usize = 16;
const HINT_BYTES: usize = 4;

impl Fingerprint {
    /// Its size as stored.
    pub const BYTES: usize = WHOLE_BYTES + Part::ALL.len() * HINT_BYTES;

    /// The fingerprint with these bytes, as a store kept them.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes a store keeps.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// What differs from `other`; `None` when both are the same request.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self.0[..WHOLE_BYTES] == other.0[..WHOLE_BYTES] {
            return None;
        }
        Some(Difference(Part::ALL.map(|part| self.hint(part) != other.hint(part))))
    }

    fn hint(&self, part: Part) -> &[u8] {
        let start = WHOLE_BYTES + part as usize * HINT_BYTES;
        &self.0[start..start + HINT_BYTES]
    }
}

impl fmt::Display for Fingerprint {
    /// The bytes that decide, in hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..WHOLE_BYTES].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("..)")
    }
}

/// Which parts of two requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference([bool; Part::ALL.len()]);

impl Difference {
    /// The parts that differ, in a fixed order.
    pub fn parts(self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().zip(self.0).filter_map(|(part, differs)| differs.then_some(part))
    }
}

fn mac(key: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC pads a short key with zeros to the block size; doing it here needs no fallible call.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    Hmac::new(&block.into())
}

/// HMAC-SHA-256 over length-prefixed chunks.
fn tag(mac: &Hmac<Sha256>, chunks: &[&[u8]]) -> [u8; 32] {
    let mut mac = mac.clone();
    for chunk in chunks {
        mac.update(&length(chunk.len()));
        mac.update(chunk);
    }
    mac.finalize().into_bytes().into()
}

/// The keyed hash of a part of a request; zeros if there is no such part.
fn part_hash(inner: &Sha256, part: Part, content: &[u8]) -> [u8; 32] {
    if content.is_empty() {
        return [0; 32];
    }
    let named = inner.clone().chain_update(part.as_str()).chain_update("\n");
    named.chain_update(content).finalize().into()
}

fn length(len: usize) -> [u8; 8] {
    u64::try_from(len).unwrap_or(u64::MAX).to_be_bytes()
}
