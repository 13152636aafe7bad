//! Who sent a webhook, and when: signatures by the rules of Standard Webhooks.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::Sha256;

/// How far the clocks of sender and receiver may be apart, transport included, if nothing is said.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// The header with the event's id.
pub const ID: &str = "webhook-id";
/// The header with the time of this attempt, in seconds since the Unix epoch.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header with a signature for each secret of the sender.
pub const SIGNATURE: &str = "webhook-signature";

const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// Most signatures that are looked at: nobody rotates more secrets than that.
const SIGNATURES_MAX: usize = 16;

/// What sender and receiver know and nobody else.
///
/// ```
/// use hapax_messaging::sink::webhook::{InvalidSecret, Secret};
///
/// let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert!(Secret::parse("whsec_short").is_err());
/// # Ok::<(), InvalidSecret>(())
/// ```
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// Reads a secret: `whsec_` (which may be left out) and 24 to 64 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let text = text.strip_prefix("whsec_").unwrap_or(text);
        let bytes = STANDARD.decode(text).map_err(|_| InvalidSecret)?;
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            return Err(InvalidSecret);
        }
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| InvalidSecret)
    }

    fn mac(&self, id: &str, timestamp: u64, body: &[u8]) -> Hmac<Sha256> {
        self.0.clone().chain_update(format!("{id}.{timestamp}.")).chain_update(body)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What was given is no secret. It is not repeated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a secret: write `whsec_` and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in base64"
)]
pub struct InvalidSecret;

/// The value of [`SIGNATURE`]: one signature for each secret, so that a receiver that knows one of
/// them is content while they change.
///
/// ```
/// use hapax_messaging::sink::webhook::{InvalidSecret, Secret, sign};
///
/// let secrets = [Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?];
/// let signature = sign(&secrets, "msg-1", 1_700_000_000, b"{}");
/// assert!(signature.starts_with("v1,"));
/// # Ok::<(), InvalidSecret>(())
/// ```
pub fn sign(secrets: &[Secret], id: &str, timestamp: u64, body: &[u8]) -> String {
    let signed = secrets.iter().map(|secret| {
        let mac = secret.mac(id, timestamp, body).finalize().into_bytes();
        format!("v1,{}", STANDARD.encode(mac))
    });
    signed.collect::<Vec<_>>().join(" ")
}

/// Whether this request was sent by somebody who knows one of these secrets, not longer ago than
/// `tolerance`. The body must be the one that was received, byte for byte.
///
/// What is verified is genuine, and may still have been sent before: act on each
/// [`id`](Verified::id) once. How long it takes says nothing about the secrets.
///
/// ```
/// use std::time::SystemTime;
///
/// use hapax_messaging::sink::webhook::{Secret, TOLERANCE, Unverified, verify};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (headers, body, now) = (http::HeaderMap::new(), b"{}", SystemTime::UNIX_EPOCH);
/// let secrets = [Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?];
/// match verify(&secrets, &headers, body, now, TOLERANCE) {
///     Ok(webhook) => println!("act once on {}", webhook.id),
///     Err(unverified) => println!("answer 401: {unverified}"),
/// }
/// # Ok(())
/// # }
/// ```
pub fn verify<'a>(
    secrets: &[Secret],
    headers: &'a HeaderMap,
    body: &[u8],
    now: SystemTime,
    tolerance: Duration,
) -> Result<Verified<'a>, Unverified> {
    let id = single(headers, ID)?;
    let digits = single(headers, TIMESTAMP)?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let timestamp: Option<u64> = digits.parse().ok().filter(|_| plain);
    let timestamp = timestamp.ok_or(Unverified::Unsigned { header: TIMESTAMP })?;
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(timestamp));
    let at = at.ok_or(Unverified::Unsigned { header: TIMESTAMP })?;
    let signatures = single(headers, SIGNATURE)?.split_ascii_whitespace().take(SIGNATURES_MAX);
    let mut genuine = false;
    for signature in signatures.filter_map(|signature| signature.strip_prefix("v1,")) {
        let Ok(signature) = STANDARD.decode(signature) else { continue };
        for secret in secrets {
            genuine |= secret.mac(id, timestamp, body).verify_slice(&signature).is_ok();
        }
    }
    if !genuine {
        return Err(Unverified::Forged);
    }
    let apart = now.duration_since(at).unwrap_or_else(|ahead| ahead.duration());
    if apart > tolerance {
        return Err(Unverified::Untimely { apart });
    }
    Ok(Verified { id, at })
}

fn single<'a>(headers: &'a HeaderMap, header: &'static str) -> Result<&'a str, Unverified> {
    let mut values = headers.get_all(header).iter();
    match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(Unverified::Unsigned { header }),
    }
}

/// A webhook that is genuine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'a> {
    /// The event's id: the same in every attempt, so it is what to deduplicate by.
    pub id: &'a str,
    /// When this attempt was made, by the sender's clock, to the second.
    pub at: SystemTime,
}

/// Why a webhook is not to be acted on: answer 401.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unverified {
    /// A header is missing, there twice, or not what it should be.
    #[error("the header {header} is not there once and readable")]
    Unsigned {
        /// Which one.
        header: &'static str,
    },
    /// No signature was made with one of the secrets, for this id, time and body.
    #[error("no signature fits: it was sent by somebody else, or changed on its way")]
    Forged,
    /// It is genuine, but was sent too long ago, or by a clock that is too far off.
    #[error("it was sent {} s away from now", apart.as_secs())]
    Untimely {
        /// How far away.
        apart: Duration,
    },
}
