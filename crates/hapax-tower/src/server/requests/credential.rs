//! Tenants by a secret that callers show, kept as its keyed hash.

use std::{fmt, sync::Arc};

use hapax_core::{RequestParts, Salt, Tenant};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, COOKIE},
    request::Parts,
};
use quick_cache::sync;

use super::{headers::is_named_by_connection, tenancy::TenantKind};

/// Where callers show the secret that tells them apart.
///
/// ```
/// use hapax_tower::{CredentialPlace, Tenancy};
/// use http::HeaderName;
///
/// let by_key = Tenancy::credential_in(CredentialPlace::Header(HeaderName::from_static("x-api-key")));
/// let by_session = Tenancy::credential_in(CredentialPlace::Cookie("session".to_owned()));
/// # drop((by_key, by_session));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialPlace {
    /// The one line of a header of this name.
    Header(HeaderName),
    /// The one cookie of this name.
    Cookie(String),
}

impl CredentialPlace {
    /// The header it is in.
    pub(super) fn header(&self) -> &HeaderName {
        match self {
            Self::Header(name) => name,
            Self::Cookie(_) => &COOKIE,
        }
    }

    /// What tells callers how to show it.
    pub(super) fn challenge(&self) -> HeaderValue {
        let challenge = match self {
            Self::Header(name) if *name == AUTHORIZATION => {
                return HeaderValue::from_static("Bearer");
            }
            Self::Header(name) => format!("ApiKey header=\"{name}\""),
            Self::Cookie(name) => format!("Cookie cookie-name=\"{name}\""),
        };
        HeaderValue::try_from(challenge).unwrap_or_else(|_| HeaderValue::from_static("Cookie"))
    }

    /// What is hashed beside the secret: no two places have one name.
    fn name(&self) -> String {
        match self {
            Self::Header(name) => name.as_str().to_owned(),
            Self::Cookie(name) => format!("cookie {name}"),
        }
    }

    /// The secret; `None` if it is not there, or more than once.
    fn find<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        match self {
            Self::Header(name) => {
                let mut lines = headers.get_all(name).iter();
                let (line, None) = (lines.next()?, lines.next()) else { return None };
                // The service would have to do without what is taken off on its way.
                (!is_named_by_connection(headers, name)).then_some(line.as_bytes())
            }
            Self::Cookie(name) => {
                let lines = headers.get_all(COOKIE).iter();
                let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
                let mut values = pairs.filter_map(|pair| {
                    let pair = pair.trim_ascii();
                    let at = pair.iter().position(|byte| *byte == b'=')?;
                    let (found, value) = pair.split_at(at);
                    (found.trim_ascii() == name.as_bytes()).then(|| value[1..].trim_ascii())
                });
                let (value, None) = (values.next()?, values.next()) else { return None };
                Some(value)
            }
        }
        .filter(|value| *self == Self::authorization() || !value.trim_ascii().is_empty())
    }

    pub(super) fn authorization() -> Self {
        Self::Header(AUTHORIZATION)
    }
}

impl fmt::Display for CredentialPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "the header {name}"),
            Self::Cookie(name) => write!(f, "the cookie {name}"),
        }
    }
}

/// Tenants by their secrets.
#[derive(Debug, Clone)]
pub(super) struct KnownCredentials {
    pub(super) place: CredentialPlace,
    known: Arc<Hashes>,
}

/// Tenants by credential, under the salt they were hashed with: hashing costs more than looking.
///
/// Credentials are copied: a header's value is a slice of the whole head it came with, and would
/// keep all of that in memory.
type Hashes = sync::Cache<Box<[u8]>, (Salt, Tenant)>;

/// Most callers whose hashes are kept in memory.
pub(crate) const KNOWN_MAX: usize = 4096;
/// Longest credential that is kept beside its hash; a longer one is hashed each time it comes.
const KNOWN_BYTES_MAX: usize = 4 << 10;

impl KnownCredentials {
    pub(super) fn new(place: CredentialPlace) -> Self {
        Self { place, known: Arc::new(Hashes::new(KNOWN_MAX)) }
    }

    pub(super) fn tenant(&self, salt: &Salt, parts: &Parts) -> Option<Tenant> {
        let credential = self.place.find(&parts.headers)?;
        if let Some((hashed_with, tenant)) = self.known.get(credential)
            && hashed_with == *salt
        {
            return Some(tenant);
        }
        let tenant = hashed(salt, &self.place, credential)?;
        if credential.len() <= KNOWN_BYTES_MAX {
            self.known.insert(credential.into(), (*salt, tenant.clone()));
        }
        Some(tenant)
    }
}

fn hashed(salt: &Salt, place: &CredentialPlace, credential: &[u8]) -> Option<Tenant> {
    let name = place.name();
    let headers = [(name.as_str(), credential)];
    let all_credentials = Tenant::parse("credential").ok()?;
    let request = RequestParts { headers: &headers, ..RequestParts::default() };
    let hash = salt.tenant_key(&all_credentials).fingerprint(&request);
    TenantKind::Credential.tenant(&hash.to_string()).ok()
}
