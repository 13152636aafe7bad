//! The tenant is whom the client's certificate names.

use hapax_core::Tenant;
use hapax_tower::{Tenancy, TenantKind};
use http::HeaderValue;

use crate::Peer;

/// Which of the names in a certificate (its subject alternative names) is meant. The common name is
/// never looked at: nothing says what is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectName {
    /// A URI, as SPIFFE writes who somebody is.
    Uri,
    /// The name of a host, in lower case.
    Dns,
}

impl SubjectName {
    /// The name of it in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uri => "URI",
            Self::Dns => "DNS name",
        }
    }
}

/// The tenant that the client's certificate names, which the connection has verified. A certificate
/// with none of these names, or with several, names nobody.
pub fn from_certificate(which: SubjectName) -> Tenancy {
    Tenancy::from_fn(move |parts| {
        let names = parts.extensions.get::<Peer>()?.certificate()?;
        let names = match which {
            SubjectName::Uri => &names.uris,
            SubjectName::Dns => &names.dns,
        };
        let [name] = &names[..] else { return None };
        Tenant::parse(name.as_str()).ok()
    })
    .of_kind(TenantKind::Certificate)
    .challenging(HeaderValue::from_static("Certificate"))
}
