//! Keys for clients that send none: made of what a request says, as its route says.
//!
//! A derived key is another one than any that is sent: it has a scope of its own. Its text names the
//! places it was read from, so that a route that is told to look elsewhere begins anew.

mod arrival;
mod content;
mod pointer;
mod spelling;
mod window;

use std::{fmt, time::Duration};

use hapax_core::{Key, Scope};
use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

pub(crate) use self::arrival::{ContentArrival, ContentKey, KeyOwner, arrive, key_of_values};
pub use self::pointer::{InvalidPointer, JsonPointer};
use self::{content::JsonContent, spelling::KeyText};
use crate::{
    secret_header::is_secret_header,
    server::{
        dialect::Dialect,
        options::Protection,
        responses::{code::Code, problem::Problem},
    },
};

/// What a key is made of where a client sends none. A key that is sent always counts for more.
///
/// ```
/// use hapax_tower::{DerivedKey, KeyPart, KeyRule, Protection};
///
/// // The same order of the same shop is placed once, whoever repeats the request.
/// let parts = ["header X-Shop", "body /order_id"].map(|part| part.parse::<KeyPart>());
/// let derived_key = Some(DerivedKey::Parts(parts.into_iter().collect::<Result<_, _>>()?));
/// let protection = Protection { derived_key, key: KeyRule::Required, ..Protection::default() };
/// # drop(protection);
/// # Ok::<(), hapax_tower::InvalidKeyPart>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DerivedKey {
    /// Of these values, all of which have to be there. They are stored, shown and passed on in the
    /// clear, as keys are.
    Parts(Vec<KeyPart>),
    /// Of everything that makes two requests the same: those that come within so long after the first
    /// of them are taken for it. That is best effort. **Two that were meant are one**, a retry that
    /// comes later runs again, and so does one that another process sees at the same moment as the
    /// first where neither finds the other yet.
    Fingerprint {
        /// How long after the first of them.
        within: Duration,
    },
}

/// A value that a key is made of: `header X-Shop`, or `body /order_id`.
///
/// A text and a number are never the same value; numbers are compared as such, so that `1` is `1.0`.
///
/// ```
/// use hapax_tower::KeyPart;
///
/// let part: KeyPart = "body /order/id".parse()?;
/// assert_eq!(part.to_string(), "body /order/id");
/// assert!("body order_id".parse::<KeyPart>().is_err());
/// # Ok::<(), hapax_tower::InvalidKeyPart>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    /// The value of a header that is sent once.
    Header(HeaderName),
    /// What a JSON body has at this place: a text, or a number.
    Body(JsonPointer),
}

impl std::str::FromStr for KeyPart {
    type Err = InvalidKeyPart;

    fn from_str(text: &str) -> Result<Self, InvalidKeyPart> {
        match text.split_once(' ') {
            Some(("header", name)) => {
                let name = HeaderName::try_from(name).map_err(|_| InvalidKeyPart::Header)?;
                Ok(Self::Header(name))
            }
            Some(("body", pointer)) => Ok(Self::Body(pointer.parse()?)),
            Some(_) | None => Err(InvalidKeyPart::Place),
        }
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header {name}"),
            Self::Body(pointer) => write!(f, "body {}", pointer.as_str()),
        }
    }
}

/// Why a text names no value of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKeyPart {
    /// It does not begin with a place that is known.
    #[error("it names no value; write `header X-Shop` or `body /order_id`")]
    Place,
    /// What follows `header` is no name of one.
    #[error("it names no header; write `header X-Shop`")]
    Header,
    /// What follows `body` is no JSON pointer.
    #[error(transparent)]
    Pointer(#[from] InvalidPointer),
}

/// Most values one key is made of.
const PARTS_MAX: usize = 8;
/// Shortest time within which requests are taken for one.
const WITHIN_MIN: Duration = Duration::from_secs(1);
/// How scopes of derived keys end. No scope of a sent key does.
const SCOPE_MARK: &str = " (derived key)";

/// Why keys of a route cannot be made so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDerivedKey {
    /// There is nothing to make it of, or too much.
    #[error("a key is made of one to {PARTS_MAX} values")]
    Count,
    /// The same value would be in it twice.
    #[error("`{part}` is named twice")]
    Twice {
        /// What is named twice.
        part: String,
    },
    /// Keys are stored and shown in the clear.
    #[error("`{name}` carries a secret, and keys are stored, shown and passed on in the clear")]
    Secret {
        /// The header.
        name: HeaderName,
    },
    /// It would be asked for only where it is missing.
    #[error("`{name}` is the header that carries the keys that are sent")]
    KeyHeader {
        /// The header.
        name: HeaderName,
    },
    /// The time is too short, or longer than anything is remembered.
    #[error("equal requests cannot be one within {within:?}: from a second to the retention")]
    Window {
        /// The time asked for.
        within: Duration,
    },
    /// Clients of that dialect always send a key.
    #[error("clients that speak of repeatable requests send a key")]
    Dialect,
}

impl DerivedKey {
    /// Refuses what contradicts itself, or the rest of its route.
    pub fn check(&self, protection: &Protection) -> Result<(), InvalidDerivedKey> {
        if protection.dialect == Dialect::Repeatability {
            return Err(InvalidDerivedKey::Dialect);
        }
        let parts = match self {
            Self::Parts(parts) => parts,
            Self::Fingerprint { within } => {
                let window = protection.policy.retention().window;
                let fits = (WITHIN_MIN..=window).contains(within);
                return if fits {
                    Ok(())
                } else {
                    Err(InvalidDerivedKey::Window { within: *within })
                };
            }
        };
        if !(1..=PARTS_MAX).contains(&parts.len()) {
            return Err(InvalidDerivedKey::Count);
        }
        for (at, part) in parts.iter().enumerate() {
            if parts[..at].contains(part) {
                return Err(InvalidDerivedKey::Twice { part: part.to_string() });
            }
            let KeyPart::Header(name) = part else { continue };
            if name == protection.key_header() {
                return Err(InvalidDerivedKey::KeyHeader { name: name.clone() });
            }
            if *name == AUTHORIZATION || is_secret_header(name) || protection.is_named_secret(name)
            {
                return Err(InvalidDerivedKey::Secret { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Whether more has to be known of a request than its head.
    pub(crate) fn needs_content(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.iter().any(|part| matches!(part, KeyPart::Body(_))),
            Self::Fingerprint { .. } => true,
        }
    }
}

/// The key that is made of these values. Each of them is there, once, and says something: what is not
/// so never becomes a key, least of all one that others have too.
pub(crate) fn key_of(
    parts: &[KeyPart],
    headers: &HeaderMap,
    content: Option<&JsonContent>,
) -> Result<Key, Problem> {
    let mut text = KeyText::default();
    for part in parts {
        match (part, content) {
            (KeyPart::Header(name), _) => text.add_header(name, header_value(headers, name)?),
            (KeyPart::Body(pointer), Some(content)) => {
                text.add_body(pointer, &content.value(pointer)?);
            }
            (KeyPart::Body(pointer), None) => return Err(nothing_at(pointer)),
        }
    }
    text.into_key().ok_or_else(|| underivable("There is nothing to make a key of.".to_owned()))
}

/// Refuses a header of this connection alone: the service would not see what the key was made of.
pub(crate) fn check_connection(
    derived: &DerivedKey,
    of_this_connection: &[HeaderName],
) -> Result<(), Problem> {
    let DerivedKey::Parts(parts) = derived else { return Ok(()) };
    let is_named =
        |part: &KeyPart| matches!(part, KeyPart::Header(name) if of_this_connection.contains(name));
    if parts.iter().any(is_named) {
        let detail =
            "Connection names what the key is made of, which would keep it from the service.";
        return Err(Problem::new(Code::KeyMalformed, detail));
    }
    Ok(())
}

fn header_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h [u8], Problem> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else {
        return Err(underivable(format!("Send {name}, of which the key is made, or a key.")));
    };
    if lines.next().is_some() {
        return Err(underivable(format!("Send {name}, of which the key is made, once.")));
    }
    match line.as_bytes().trim_ascii() {
        b"" => Err(underivable(format!("{name}, of which the key is made, is empty."))),
        value => Ok(value),
    }
}

fn nothing_at(pointer: &JsonPointer) -> Problem {
    let place = pointer.as_str();
    underivable(format!("The body has nothing at {place}, of which the key is made."))
}

fn underivable(detail: String) -> Problem {
    Problem::new(Code::KeyUnderivable, detail)
}

/// The scope of the derived keys of a scope; `None` if it is too long.
pub(crate) fn derived_scope(scope: &Scope) -> Option<Scope> {
    Scope::parse([scope.as_str(), SCOPE_MARK].concat()).ok()
}

/// The scope without what tells derived keys apart; `None` if that is not there.
pub(crate) fn undecorated(scope: &str) -> Option<&str> {
    scope.strip_suffix(SCOPE_MARK)
}
