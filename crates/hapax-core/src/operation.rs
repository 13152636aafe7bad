//! Which operation is meant: tenant, scope and key, parsed once at the border.

use std::{fmt, str::FromStr, sync::Arc};

use sha2::{Digest, Sha256};

use crate::limits::{KEY_BYTES_MAX, SCOPE_BYTES_MAX, TENANT_BYTES_MAX};

/// What should happen once: a key, in a scope, of a tenant.
///
/// The same key in another scope or of another tenant is another operation. Cloning is cheap.
///
/// ```
/// use hapax_core::{Key, Operation, Scope, Tenant};
///
/// let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("POST /payments")?);
/// let first = Operation::new(tenant.clone(), scope.clone(), Key::parse("order-17")?);
/// let again = Operation::new(tenant, scope, Key::parse("order-17")?);
/// assert_eq!(first.id(), again.id());
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Operation {
    id: OperationId,
    tenant: Tenant,
    scope: Scope,
    key: Key,
}

impl Operation {
    /// The operation named by these three.
    pub fn new(tenant: Tenant, scope: Scope, key: Key) -> Self {
        let id = OperationId::of(&tenant, &scope, &key);
        Self { id, tenant, scope, key }
    }

    /// The digest under which stores keep it.
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// Who asks.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Which kind of work is asked for.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The client's key.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}/{:?}", self.tenant.as_str(), self.scope.as_str(), self.key.as_str())
    }
}

/// The digest of an operation's identity: sixteen bytes, equal exactly when the operation is.
///
/// SHA-256 over tenant, scope and key, a line each, cut to 128 bits, so that SQL can compute it too.
/// No name has a line break in it.
///
/// ```
/// use hapax_core::OperationId;
///
/// let text = "0123456789abcdef0123456789abcdef";
/// let id: OperationId = text.parse()?;
/// assert_eq!(id.to_string(), text);
/// # Ok::<(), hapax_core::InvalidId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId([u8; 16]);

impl OperationId {
    fn of(tenant: &Tenant, scope: &Scope, key: &Key) -> Self {
        let hash = Sha256::new().chain_update(tenant.as_str()).chain_update("\n");
        let hash = hash.chain_update(scope.as_str()).chain_update("\n");
        let digest = hash.chain_update(key.as_str()).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        Self(id)
    }

    /// The id with these bytes, as a store kept them.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes a store keeps.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id an operator names: as listings show it, or as a client was told it. Whether the
    /// client's tag is right does not matter to somebody who may see every operation.
    pub fn from_operator(text: &str) -> Result<Self, InvalidId> {
        text.parse().or_else(|_| text.parse().map(|signed: SignedId| signed.id()))
    }
}

impl FromStr for OperationId {
    type Err = InvalidId;

    /// Reads what `Display` writes: 32 hexadecimal digits, in either case.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        from_hex(text).map(Self)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An operation's id as clients are told it: with a tag that only the store's salt makes.
///
/// Whoever guesses tenant, scope and key can compute the id, but not the tag. It is written as the
/// id, a hyphen and the tag, so that people who see it find the id they know from the store.
///
/// ```
/// use hapax_core::{OperationId, Salt, SignedId};
///
/// let id: OperationId = "0123456789abcdef0123456789abcdef".parse()?;
/// let salt = Salt::from_bytes([7; 32]);
/// let told: SignedId = salt.signed(id).to_string().parse()?;
/// assert_eq!(salt.verified(&told), Some(id));
/// assert_eq!(Salt::from_bytes([8; 32]).verified(&told), None);
/// # Ok::<(), hapax_core::InvalidId>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedId {
    id: OperationId,
    tag: [u8; Self::TAG_BYTES],
}

impl SignedId {
    /// The size of the tag.
    pub const TAG_BYTES: usize = 16;

    pub(crate) const fn new(id: OperationId, tag: [u8; Self::TAG_BYTES]) -> Self {
        Self { id, tag }
    }

    pub(crate) const fn tag(&self) -> &[u8; Self::TAG_BYTES] {
        &self.tag
    }

    /// The id, whoever wrote the tag: for operators, who may see every operation.
    /// [`Salt::verified`](crate::Salt::verified) is for everybody else.
    pub const fn id(&self) -> OperationId {
        self.id
    }
}

impl FromStr for SignedId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (id, tag) = text.split_once('-').ok_or(InvalidId)?;
        Ok(Self { id: id.parse()?, tag: from_hex(tag)? })
    }
}

impl fmt::Display for SignedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.id)?;
        self.tag.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The text is no operation's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation's id is 32 hexadecimal digits")]
pub struct InvalidId;

fn from_hex(text: &str) -> Result<[u8; 16], InvalidId> {
    let (digits, mut bytes) = (text.as_bytes(), [0; 16]);
    if digits.len() != 2 * bytes.len() {
        return Err(InvalidId);
    }
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(InvalidId);
        };
        *byte = high << 4 | low;
    }
    Ok(bytes)
}

/// Why a tenant, scope or key was refused.
///
/// ```
/// use hapax_core::{InvalidName, Key};
///
/// assert_eq!(Key::parse("order\n17"), Err(InvalidName::NotVisible { at: 5 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// There is nothing in it, or only spaces.
    #[error("it is empty; send 1 to {max} visible ASCII characters")]
    Empty {
        /// The limit, in bytes.
        max: usize,
    },
    /// It is longer than the limit; it is refused, never cut.
    #[error("it is {len} bytes long; the limit is {max}")]
    TooLong {
        /// Its length, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// It holds a byte that is not visible ASCII.
    #[error("the byte at position {at} is not visible ASCII")]
    NotVisible {
        /// Where the first such byte is, counted from zero.
        at: usize,
    },
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Accepts visible ASCII (inner spaces included) within the limit, as it is: nothing
            /// is trimmed, folded or cut.
            pub fn parse(raw: impl AsRef<[u8]>) -> Result<Self, InvalidName> {
                visible_ascii(raw.as_ref(), $max).map(|text| Self(text.into()))
            }

            /// The text as it came.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

pub(crate) use name;

name!(
    /// Who asks. Never taken from the client's word alone.
    ///
    /// ```
    /// use hapax_core::Tenant;
    ///
    /// assert_eq!(Tenant::parse("acme")?.as_str(), "acme");
    /// # Ok::<(), hapax_core::InvalidName>(())
    /// ```
    Tenant,
    TENANT_BYTES_MAX
);
name!(
    /// Which operation: method and concrete path, a consumer's name, a job's name.
    ///
    /// ```
    /// use hapax_core::Scope;
    ///
    /// assert_eq!(Scope::parse("POST /payments")?.as_str(), "POST /payments");
    /// # Ok::<(), hapax_core::InvalidName>(())
    /// ```
    Scope,
    SCOPE_BYTES_MAX
);
name!(
    /// The client's opaque key, made once per logical operation.
    ///
    /// ```
    /// use hapax_core::Key;
    ///
    /// assert_eq!(Key::parse("order-17")?.as_str(), "order-17");
    /// assert!(Key::parse("").is_err());
    /// # Ok::<(), hapax_core::InvalidName>(())
    /// ```
    Key,
    KEY_BYTES_MAX
);

impl Key {
    /// The usual spelling of a UUID: 36 characters, in lower case.
    pub(crate) fn from_uuid(uuid: [u8; 16]) -> Self {
        let mut text = String::with_capacity(36);
        for (at, byte) in uuid.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            text.push_str(&format!("{hyphen}{byte:02x}"));
        }
        Self(text.into())
    }
}

pub(crate) fn visible_ascii(raw: &[u8], max: usize) -> Result<&str, InvalidName> {
    if raw.len() > max {
        return Err(InvalidName::TooLong { len: raw.len(), max });
    }
    let is_hidden = |byte: &u8| !matches!(byte, b' '..=b'~');
    // Without a way out half-way, many bytes are looked at together.
    let (hides, says) = raw.iter().fold((false, false), |(hides, says), byte| {
        (hides | is_hidden(byte), says | (*byte != b' '))
    });
    if hides {
        let at = raw.iter().position(is_hidden).unwrap_or_default();
        return Err(InvalidName::NotVisible { at });
    }
    if !says {
        return Err(InvalidName::Empty { max });
    }
    str::from_utf8(raw).map_err(|error| InvalidName::NotVisible { at: error.valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Salt;

    fn check(raw: &[u8], expected: Result<&str, InvalidName>) {
        let parsed = Key::parse(raw);
        assert_eq!(parsed.as_ref().map(Key::as_str).map_err(|refusal| *refusal), expected);
    }

    #[test]
    fn keys_of_one_and_of_255_bytes_are_accepted_as_they_are() {
        check(b"a", Ok("a"));
        check(b"  A b~ ", Ok("  A b~ "));
        let longest = "k".repeat(KEY_BYTES_MAX);
        check(longest.as_bytes(), Ok(&longest));
    }

    #[test]
    fn a_key_that_is_too_long_is_refused_and_never_cut() {
        let too_long = vec![b'k'; KEY_BYTES_MAX + 1];
        check(&too_long, Err(InvalidName::TooLong { len: 256, max: 255 }));
    }

    #[test]
    fn empty_and_blank_keys_are_refused() {
        check(b"", Err(InvalidName::Empty { max: 255 }));
        check(b"   ", Err(InvalidName::Empty { max: 255 }));
    }

    #[test]
    fn control_bytes_and_anything_beyond_ascii_are_refused_with_their_position() {
        for (raw, at) in [
            (&b"a\0b"[..], 1),
            (b"\ta", 0),
            (b"ab\x7f", 2),
            (b"a\r\nb", 1),
            ("schl\u{fc}ssel".as_bytes(), 4),
            (b"\xc0\xaf", 0),
        ] {
            check(raw, Err(InvalidName::NotVisible { at }));
        }
    }

    #[test]
    fn tenants_and_scopes_have_their_own_limits() {
        assert!(Tenant::parse("t".repeat(TENANT_BYTES_MAX)).is_ok());
        assert!(Tenant::parse("t".repeat(TENANT_BYTES_MAX + 1)).is_err());
        assert!(Scope::parse("s".repeat(SCOPE_BYTES_MAX)).is_ok());
        assert!(Scope::parse("s".repeat(SCOPE_BYTES_MAX + 1)).is_err());
    }

    fn operation(tenant: &str, scope: &str, key: &str) -> Operation {
        Operation::new(
            Tenant::parse(tenant).unwrap(),
            Scope::parse(scope).unwrap(),
            Key::parse(key).unwrap(),
        )
    }

    #[test]
    fn moving_a_character_between_the_parts_makes_another_operation() {
        let ids = [
            operation("ab", "c", "d").id(),
            operation("a", "bc", "d").id(),
            operation("a", "b", "cd").id(),
            operation("a", "b", "CD").id(),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id));
        }
        assert_eq!(ids[0], operation("ab", "c", "d").id());
    }

    #[test]
    fn the_digest_is_fixed_because_sql_computes_it_too() {
        let id = operation("acme", "POST /payments", "k-1").id();
        assert_eq!(id.to_string(), "1a0fb49b3048c68ad311324a449becfe");
        assert_eq!(OperationId::from_bytes(*id.as_bytes()), id);
    }

    #[test]
    fn an_id_is_read_as_it_is_written_and_nothing_else_is_one() {
        let id = operation("acme", "POST /payments", "k-1").id();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        let signed = Salt::from_bytes([7; 32]).signed(id);
        assert_eq!(signed.to_string().parse(), Ok(signed));
        assert_eq!(signed.id(), id);
        for text in
            ["", "12", "+28ec75c9297cba8de8adad59f109962", "ü28ec75c9297cba8de8adad59f10996"]
        {
            assert_eq!(text.parse::<OperationId>(), Err(InvalidId), "{text}");
            assert_eq!(format!("{id}-{text}").parse::<SignedId>(), Err(InvalidId), "{text}");
        }
        assert_eq!(id.to_string().parse::<SignedId>(), Err(InvalidId));
        for named in [id.to_string(), signed.to_string()] {
            assert_eq!(OperationId::from_operator(&named), Ok(id));
        }
    }

    #[test]
    fn only_the_salt_that_signed_an_id_verifies_it() {
        let (ours, theirs) = (Salt::from_bytes([7; 32]), Salt::from_bytes([8; 32]));
        let id = operation("acme", "POST /payments", "k-1").id();
        let other = operation("acme", "POST /payments", "k-2").id();
        assert_eq!(ours.verified(&ours.signed(id)), Some(id));
        assert_eq!(ours.verified(&theirs.signed(id)), None);
        assert_eq!(ours.verified(&SignedId::new(other, *ours.signed(id).tag())), None);
        assert_eq!(ours.verified(&SignedId::new(id, *id.as_bytes())), None);
    }
}
