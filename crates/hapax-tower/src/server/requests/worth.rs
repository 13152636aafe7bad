//! What a request is worth, where its body says so: what was not done again can then be told in money.

use std::fmt;

use serde_json::Value;

/// Largest body that is looked into, in bytes.
const BODY_BYTES_MAX: usize = 1 << 16;
/// Most that one request can be worth, in millionths: what is more is a slip of somebody's pen.
const MILLIONTHS_MAX: f64 = 1e18;
const MILLION: f64 = 1e6;

/// Where the JSON body of a request says what it is worth.
///
/// ```
/// use hapax_tower::{Currency, Protection, WorthRule, WorthCurrency};
///
/// // `{"amount": 1250, "to": "ada"}` is worth 12.50 euros.
/// let euro = Currency::parse("EUR").map(WorthCurrency::Always);
/// let worth = WorthRule { amount: "/amount".to_owned(), decimals: 2, currency: euro };
/// let protection = Protection { worth: Some(worth), ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorthRule {
    /// The JSON pointer of its amount, a number or a text that is one.
    pub amount: String,
    /// How many of its last digits are decimals, where amounts are whole numbers of cents or the like.
    pub decimals: u8,
    /// What it is an amount of; of nothing in particular without it.
    pub currency: Option<WorthCurrency>,
}

/// What an amount is one of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorthCurrency {
    /// What the body says at this JSON pointer.
    At(String),
    /// Always this one.
    Always(Currency),
}

impl WorthRule {
    /// What a request with this body is worth; [`RepeatedWorth::Untold`] if it does not say so.
    pub(crate) fn of(&self, body: &[u8]) -> RepeatedWorth {
        self.read(body).map_or(RepeatedWorth::Untold, RepeatedWorth::Told)
    }

    fn read(&self, body: &[u8]) -> Option<Money> {
        let body = (body.len() <= BODY_BYTES_MAX).then_some(body)?;
        let body: Value = serde_json::from_slice(body).ok()?;
        let amount = match body.pointer(&self.amount)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.parse().ok()?,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        let currency = match &self.currency {
            None => None,
            Some(WorthCurrency::Always(currency)) => Some(*currency),
            Some(WorthCurrency::At(pointer)) => {
                Some(Currency::parse(body.pointer(pointer)?.as_str()?)?)
            }
        };
        let millionths = amount / 10_f64.powi(self.decimals.into()) * MILLION;
        let is_worth = (0.0..=MILLIONTHS_MAX).contains(&millionths);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within bounds"
        )]
        is_worth.then(|| Money { millionths: millionths.round() as u64, currency })
    }
}

/// What a repeated request would have cost once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatedWorth {
    /// As much as this.
    Told(Money),
    /// Its body does not say so.
    Untold,
}

/// An amount, and what it is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    /// How much, in millionths.
    pub millionths: u64,
    /// What it is an amount of, where that is known.
    pub currency: Option<Currency>,
}

/// The code of a currency: three letters, as in ISO 4217.
///
/// ```
/// use hapax_tower::Currency;
///
/// assert_eq!(Currency::parse("eur"), Currency::parse("EUR"));
/// assert_eq!(Currency::parse("euro"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The currency with this code, in either case.
    pub fn parse(code: &str) -> Option<Self> {
        let letters: [u8; 3] = code.as_bytes().try_into().ok()?;
        let is_code = letters.iter().all(u8::is_ascii_alphabetic);
        is_code.then(|| Self(letters.map(|letter| letter.to_ascii_uppercase())))
    }

    /// Its code, in capital letters.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(decimals: u8, currency: Option<WorthCurrency>) -> WorthRule {
        WorthRule { amount: "/order/amount".to_owned(), decimals, currency }
    }

    #[test]
    fn an_amount_is_read_however_it_is_written() {
        for (decimals, amount, millionths) in [
            (0, "12.5", 12_500_000),
            (0, "\"12.50\"", 12_500_000),
            (2, "1250", 12_500_000),
            (2, "\"1250\"", 12_500_000),
            (3, "1", 1_000),
            (0, "0", 0),
            (0, "0.1", 100_000),
        ] {
            let body = format!(r#"{{"order":{{"amount":{amount}}}}}"#);
            let worth = rule(decimals, None).of(body.as_bytes());
            let told = RepeatedWorth::Told(Money { millionths, currency: None });
            assert_eq!(worth, told, "{amount}");
        }
    }

    #[test]
    fn what_says_no_amount_is_worth_nothing_that_is_told() {
        let at = Some(WorthCurrency::At("/currency".to_owned()));
        for body in [
            &b"amount=12"[..],
            b"",
            br#"{"order":12}"#,
            br#"{"order":{"amount":-1},"currency":"EUR"}"#,
            br#"{"order":{"amount":1e300},"currency":"EUR"}"#,
            br#"{"order":{"amount":"NaN"},"currency":"EUR"}"#,
            br#"{"order":{"amount":true},"currency":"EUR"}"#,
            br#"{"order":{"amount":1}}"#,
            br#"{"order":{"amount":1},"currency":"<b>"}"#,
            &[b' '; BODY_BYTES_MAX + 1],
        ] {
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]);
            assert_eq!(rule(0, at.clone()).of(body), RepeatedWorth::Untold, "{shown}");
        }
    }

    #[test]
    fn a_currency_is_the_bodys_or_always_the_same() {
        let body = br#"{"order":{"amount":1},"currency":"eur"}"#;
        let euro = Currency::parse("EUR");
        let at = WorthCurrency::At("/currency".to_owned());
        for currency in [at, WorthCurrency::Always(euro.unwrap())] {
            let worth = rule(0, Some(currency)).of(body);
            let told = Money { millionths: 1_000_000, currency: euro };
            assert_eq!(worth, RepeatedWorth::Told(told));
        }
    }
}
