//! The tenant is what a signed token says.

use std::{fmt, time::Duration};

use hapax_core::Tenant;
use hapax_tower::{Tenancy, TenantKind};
use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, errors::Error};
use serde_json::{Map, Value};

/// Shortest secret, in bytes: what RFC 7518 asks for HS256.
const SECRET_BYTES_MIN: usize = 32;

/// The tenant that a token in `Authorization: Bearer` names, if the token is good: signed by the
/// key, in its time, from its issuer, for its audience. Everything else is refused with 401.
pub fn from_token(verifier: Verifier) -> Tenancy {
    Tenancy::from_fn(move |parts| verifier.tenant(&parts.headers))
        .of_kind(TenantKind::Jwt)
        .reading([AUTHORIZATION])
}

/// What makes a token good, and which part of it names the tenant.
pub struct Verifier {
    key: DecodingKey,
    validation: Validation,
    claim: String,
    /// Whether the issuer is part of the tenant.
    names_issuer: bool,
}

impl Verifier {
    /// Accepts what is signed by this key, by its algorithms alone, and not over.
    pub fn new(key: VerifierKey, claim: &str, leeway: Duration) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.algorithms = key.algorithms;
        validation.leeway = leeway.as_secs();
        validation.validate_nbf = true;
        Self { key: key.key, validation, claim: claim.to_owned(), names_issuer: false }
    }

    /// Accepts tokens of these issuers alone. The issuer is then part of the tenant: two issuers may
    /// use one name for two people, on one route or on two.
    #[must_use]
    pub fn issuers(mut self, issuers: &[String]) -> Self {
        self.validation.set_issuer(issuers);
        self.validation.required_spec_claims.insert("iss".to_owned());
        self.names_issuer = true;
        self
    }

    /// Accepts tokens for one of these audiences alone. Without any, a token that names an
    /// audience is refused: it was made for somebody else.
    #[must_use]
    pub fn audiences(mut self, audiences: &[String]) -> Self {
        self.validation.set_audience(audiences);
        self.validation.required_spec_claims.insert("aud".to_owned());
        self
    }

    /// The tenant the request's token names.
    fn tenant(&self, headers: &HeaderMap) -> Option<Tenant> {
        let token = bearer(headers)?;
        let decoded =
            jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation);
        let refused = |error: &Error| tracing::debug!(%error, "a token was refused");
        let claims = decoded.inspect_err(refused).ok()?.claims;
        let name = match claims.get(&self.claim)? {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        if self.names_issuer {
            // No configured issuer holds a space, so no two pairs are written alike.
            return Tenant::parse(format!("{} {name}", claims.get("iss")?.as_str()?)).ok();
        }
        Tenant::parse(name).ok()
    }
}

/// The token of a request; `None` if there is none, or more than one credential.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut verifier = f.debug_struct("Verifier");
        verifier.field("algorithms", &self.validation.algorithms).field("claim", &self.claim);
        verifier.finish_non_exhaustive()
    }
}

/// A key, with the algorithms it is used with. A token never chooses: its own word on how it was
/// signed must be one of them.
pub struct VerifierKey {
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
}

impl VerifierKey {
    /// A secret that the issuer knows too.
    pub fn secret(secret: &[u8], algorithms: &[String]) -> Result<Self, InvalidKey> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(InvalidKey::ShortSecret);
        }
        let algorithms = read(algorithms, AlgorithmFamily::Hmac, Algorithm::HS256)?;
        Ok(Self { key: DecodingKey::from_secret(secret), algorithms })
    }

    /// The issuer's public key, in PEM.
    pub fn public(pem: &[u8], algorithms: &[String]) -> Result<Self, InvalidKey> {
        if pem.windows(PRIVATE.len()).any(|part| part == PRIVATE) {
            return Err(InvalidKey::Private);
        }
        let (key, usual) = DecodingKey::from_rsa_pem(pem)
            .map(|key| (key, Algorithm::RS256))
            .or_else(|_| DecodingKey::from_ec_pem(pem).map(|key| (key, Algorithm::ES256)))
            .or_else(|_| DecodingKey::from_ed_pem(pem).map(|key| (key, Algorithm::EdDSA)))
            .map_err(InvalidKey::NotPem)?;
        let algorithms = read(algorithms, key.family(), usual)?;
        Ok(Self { key, algorithms })
    }
}

const PRIVATE: &[u8] = b"PRIVATE KEY-----";

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifierKey").field("algorithms", &self.algorithms).finish_non_exhaustive()
    }
}

/// The algorithms of these names, all of them fit for a key of this family.
fn read(
    names: &[String],
    family: AlgorithmFamily,
    usual: Algorithm,
) -> Result<Vec<Algorithm>, InvalidKey> {
    if names.is_empty() {
        return Ok(vec![usual]);
    }
    let read = names.iter().map(|name| {
        let algorithm = name.parse().ok().filter(|named| family.algorithms().contains(named));
        algorithm.ok_or_else(|| {
            let fit = family.algorithms().iter().map(|fit| format!("\"{fit:?}\"")).collect();
            InvalidKey::Algorithm { name: name.clone(), fit }
        })
    });
    read.collect()
}

/// Why tokens cannot be verified so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The secret could be guessed.
    #[error(
        "the secret is shorter than {SECRET_BYTES_MIN} bytes; use a longer one, made at random"
    )]
    ShortSecret,
    /// The file holds the key that signs.
    #[error("this is a private key; the gateway needs the public one alone")]
    Private,
    /// The file holds no public key.
    #[error("this is not a public key in PEM: RSA, P-256, P-384 or Ed25519")]
    NotPem(#[source] Error),
    /// The key is not used with this algorithm; taking it would let a client forge tokens.
    #[error("{name:?} does not fit the key; write one of {} instead", fit.join(", "))]
    Algorithm {
        /// The algorithm named.
        name: String,
        /// Those that fit.
        fit: Vec<String>,
    },
}
