//! Whose words the clients of a route use.

use http::HeaderName;

use super::execution::status_meaning::ResultPolicy;
use crate::header_names::IDEMPOTENCY_KEY;

/// Which header carries the key, and whose words refusals are in: problem documents, or what the
/// clients of an API know that many others were made alike.
///
/// ```
/// use hapax_tower::{Dialect, Protection};
/// use http::HeaderName;
///
/// let own_header = Dialect::Header(HeaderName::from_static("x-request-id"));
/// assert_eq!(own_header.key_header(), "x-request-id");
/// let protection = Protection { dialect: own_header, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// A header of this name.
    Header(HeaderName),
    /// `Repeatability-Request-ID` and `Repeatability-First-Sent`, as OASIS Repeatable Requests say.
    Repeatability,
    /// `Idempotency-Key` and errors as Stripe has them. A key belongs to the account that
    /// `Stripe-Account` and `Stripe-Context` name.
    Stripe,
    /// `PayPal-Request-Id` and errors as PayPal has them.
    Paypal,
    /// `Idempotency-Key` and errors as Adyen has them.
    Adyen,
}

impl Dialect {
    /// The header that carries the key.
    pub fn key_header(&self) -> &HeaderName {
        match self {
            Self::Header(name) => name,
            Self::Repeatability => &REPEATABILITY_REQUEST_ID,
            Self::Stripe | Self::Adyen => &STANDARD_HEADER,
            Self::Paypal => &PAYPAL_REQUEST_ID,
        }
    }

    /// The name used in configuration and in the published policy.
    ///
    /// ```
    /// assert_eq!(hapax_tower::Dialect::Stripe.as_str(), "stripe");
    /// ```
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Header(_) => "idempotency-key",
            Self::Repeatability => "repeatability",
            Self::Stripe => "stripe",
            Self::Paypal => "paypal",
            Self::Adyen => "adyen",
        }
    }

    /// What results mean where nobody says otherwise.
    ///
    /// ```
    /// use hapax_tower::{Dialect, ResultPolicy};
    ///
    /// assert_eq!(Dialect::Stripe.results(), ResultPolicy::Stripe);
    /// assert_eq!(Dialect::Adyen.results(), ResultPolicy::Terminal);
    /// ```
    pub const fn results(&self) -> ResultPolicy {
        match self {
            Self::Stripe => ResultPolicy::Stripe,
            Self::Header(_) | Self::Repeatability | Self::Paypal | Self::Adyen => {
                ResultPolicy::Terminal
            }
        }
    }
}

/// The header of OASIS Repeatable Requests that carries the key.
pub(crate) static REPEATABILITY_REQUEST_ID: HeaderName =
    HeaderName::from_static("repeatability-request-id");

/// The header of the standard that carries the key.
static STANDARD_HEADER: HeaderName = IDEMPOTENCY_KEY;

/// PayPal's header that carries the key.
static PAYPAL_REQUEST_ID: HeaderName = HeaderName::from_static("paypal-request-id");
