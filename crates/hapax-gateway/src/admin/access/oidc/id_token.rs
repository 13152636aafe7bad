//! What a provider says of somebody: an ID token, believed only if everything about it is right.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, Validation, decode, decode_header,
    errors::Error,
    jwk::{Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most keys of a provider that are looked at.
const KEYS_MAX: usize = 64;
/// How far the clocks of the provider and of this machine may be apart, in seconds.
const LEEWAY_SECONDS: u64 = 60;
/// How old a token may be, in seconds: it was made for the code that was just exchanged.
const AGE_SECONDS_MAX: u64 = 600;

/// What a token says.
pub(super) type Claims = Map<String, Value>;

/// The public keys a provider signs with.
#[derive(Debug)]
pub(super) struct SigningKeys(Vec<SigningKey>);

struct SigningKey {
    id: Option<String>,
    /// The only algorithm it is for, if the provider says so.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct JwkDocument {
    keys: Vec<Value>,
}

impl SigningKeys {
    /// The keys of a JWKS document that verify signatures; others in it are no concern of ours.
    pub(super) fn parse(document: &[u8]) -> Result<Self, serde_json::Error> {
        let JwkDocument { keys } = serde_json::from_slice(document)?;
        let keys = keys.into_iter().take(KEYS_MAX);
        let read = keys.filter_map(|key| SigningKey::of(&serde_json::from_value(key).ok()?));
        Ok(Self(read.collect()))
    }

    /// Those that a token with this header may be signed by.
    fn fit_for(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<&SigningKey> {
        let is_fit = |key: &&SigningKey| {
            let is_named = id.is_none_or(|id| key.id.as_deref() == Some(id));
            let is_allowed = key.algorithm.is_none_or(|only| only == algorithm);
            is_named && is_allowed && key.key.family().algorithms().contains(&algorithm)
        };
        self.0.iter().filter(is_fit).collect()
    }
}

impl SigningKey {
    fn of(jwk: &Jwk) -> Option<Self> {
        let signs = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
        let key = DecodingKey::from_jwk(jwk).ok()?;
        // A secret that is published is none.
        let is_public = key.family() != AlgorithmFamily::Hmac;
        let algorithm = jwk.common.key_algorithm.map(Algorithm::try_from).transpose().ok()?;
        (signs && is_public).then(|| Self { id: jwk.common.key_id.clone(), algorithm, key })
    }
}

/// What must be true of a token.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// The time of day, in seconds since 1970.
    pub(super) now: u64,
}

/// Why a token is not believed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenFault {
    /// The provider may have other keys by now.
    #[error("it is signed by a key that the provider does not publish")]
    UnknownKey,
    /// No other key would mend it.
    #[error("{0}")]
    Refused(&'static str),
    /// What the library found.
    #[error("its signature or one of its claims is not right")]
    Invalid(#[source] Error),
}

/// The claims of a token that is signed by one of the keys and says what is expected.
pub(super) fn verified(
    token: &str,
    keys: &SigningKeys,
    expected: &Expected<'_>,
) -> Result<Claims, TokenFault> {
    let header = decode_header(token).map_err(TokenFault::Invalid)?;
    if header.crit.is_some() {
        return Err(TokenFault::Refused("it has extensions that must be understood"));
    }
    let is_signed_publicly = !AlgorithmFamily::Hmac.algorithms().contains(&header.alg);
    if !is_signed_publicly {
        return Err(TokenFault::Refused("it is signed by a secret instead of a key"));
    }
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY_SECONDS;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let mut fault = TokenFault::UnknownKey;
    for SigningKey { key, .. } in keys.fit_for(header.kid.as_deref(), header.alg) {
        match decode::<Claims>(token, key, &validation) {
            Ok(decoded) => return as_expected(decoded.claims, expected),
            Err(error) => fault = TokenFault::Invalid(error),
        }
    }
    Err(fault)
}

/// What the library does not look at.
fn as_expected(claims: Claims, expected: &Expected<'_>) -> Result<Claims, TokenFault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let is_meant_for_many =
        claims.get("aud").and_then(Value::as_array).is_some_and(|many| many.len() > 1);
    let party = claims.get("azp");
    if (is_meant_for_many || party.is_some()) && text("azp") != Some(expected.client_id) {
        return Err(TokenFault::Refused("it was made for somebody else"));
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(TokenFault::Refused("it was made for another sign-in"));
    }
    let made = claims.get("iat").and_then(Value::as_f64);
    let made = made.ok_or(TokenFault::Refused("it does not say when it was made"))?;
    let (earliest, latest) = (
        expected.now.saturating_sub(AGE_SECONDS_MAX + LEEWAY_SECONDS),
        expected.now + LEEWAY_SECONDS,
    );
    if made < seconds(earliest) || made > seconds(latest) {
        return Err(TokenFault::Refused("it was made at another time; compare the clocks"));
    }
    Ok(claims)
}

/// Exact until long after anybody cares.
fn seconds(since_1970: u64) -> f64 {
    u32::try_from(since_1970).map_or(f64::INFINITY, f64::from)
}
