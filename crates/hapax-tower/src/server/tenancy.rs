//! Whose keys they are. There is no default: running unscoped must be nobody's accident.

use std::{fmt, sync::Arc};

use hapax_core::{Fingerprint, InvalidName, RequestParts, Salt, Tenant};
use http::{header::AUTHORIZATION, request::Parts};

/// How the tenant of a request is found.
#[derive(Clone)]
pub struct Tenancy(Kind);

#[derive(Clone)]
enum Kind {
    Credential,
    Single(Tenant),
    FromFn(Arc<TenantFn>),
}

type TenantFn = dyn Fn(&Parts) -> Option<Tenant> + Send + Sync;

impl Tenancy {
    /// One tenant per `Authorization` header, kept as a keyed hash; a request without one is
    /// refused with 401.
    ///
    /// It keeps clients apart, and proves nothing: whether the credential is good is decided by
    /// what stands in front of this layer. Clients whose tokens change between retries need
    /// [`Tenancy::from_fn`].
    pub fn credential() -> Self {
        Self(Kind::Credential)
    }

    /// One tenant for everybody: every client can hit every key. For services with one caller.
    pub fn single(name: &str) -> Result<Self, InvalidName> {
        Tenant::parse(name).map(|tenant| Self(Kind::Single(tenant)))
    }

    /// The tenant the application found, such as the account an earlier layer verified; `None`
    /// refuses the request with 401.
    pub fn from_fn(tenant: impl Fn(&Parts) -> Option<Tenant> + Send + Sync + 'static) -> Self {
        Self(Kind::FromFn(Arc::new(tenant)))
    }

    pub(crate) fn of(&self, salt: &Salt, parts: &Parts) -> Option<Tenant> {
        match &self.0 {
            Kind::Credential => from_credential(salt, parts),
            Kind::Single(tenant) => Some(tenant.clone()),
            Kind::FromFn(tenant) => tenant(parts),
        }
    }
}

fn from_credential(salt: &Salt, parts: &Parts) -> Option<Tenant> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let (credential, None) = (lines.next()?, lines.next()) else { return None };
    let headers = [(AUTHORIZATION.as_str(), credential.as_bytes())];
    let all_credentials = Tenant::parse("credential").ok()?;
    let request = RequestParts { headers: &headers, ..RequestParts::default() };
    let hash = salt.tenant_key(&all_credentials).fingerprint(&request);
    Tenant::parse(format!("credential-{}", hex(&hash))).ok()
}

/// The deciding bytes of a keyed hash, as text.
pub(crate) fn hex(hash: &Fingerprint) -> String {
    hash.as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Tenancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Credential => f.write_str("Tenancy::credential()"),
            Kind::Single(tenant) => write!(f, "Tenancy::single({tenant:?})"),
            Kind::FromFn(_) => f.write_str("Tenancy::from_fn(..)"),
        }
    }
}
