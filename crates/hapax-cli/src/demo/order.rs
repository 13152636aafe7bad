//! What a customer asks a payments API for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Largest amount of one payment.
const AMOUNT_MAX: Cents = Cents(1_000_000);
/// Longest name of an account or a reference, in bytes: as long as a key may be.
const NAME_BYTES_MAX: usize = 255;

/// One payment, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaymentOrder {
    pub(super) account: String,
    /// In cents.
    pub(super) amount: Cents,
    /// What the customer calls it. Our customers use their idempotency key.
    pub(super) reference: String,
}

impl PaymentOrder {
    /// The order a body asks for, or why it asks for none.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let order: Self = serde_json::from_slice(body).map_err(|error| {
            format!("write {{\"account\", \"amount\" in cents, \"reference\"}}: {error}")
        })?;
        let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        if !is_name(&order.account) || !is_name(&order.reference) {
            return Err(format!("account and reference have 1 to {NAME_BYTES_MAX} bytes"));
        }
        if order.amount == Cents(0) || order.amount > AMOUNT_MAX {
            return Err(format!("an amount is 1 to {} cents", AMOUNT_MAX.0));
        }
        Ok(order)
    }
}

/// An amount of money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cents(pub(super) u64);

impl std::iter::Sum for Cents {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.map(|amount| amount.0).sum())
    }
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}.{:02}", grouped(self.0 / 100), self.0 % 100))
    }
}

/// Like [`grouped`], for what was counted here.
pub(super) fn counted(number: usize) -> String {
    grouped(u64::try_from(number).unwrap_or(u64::MAX))
}

/// A number with a comma before each group of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_as_people_write_it() {
        for (cents, text) in [(0, "$0.00"), (5, "$0.05"), (123_456_789, "$1,234,567.89")] {
            assert_eq!(Cents(cents).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_order_is_refused_with_what_to_write() {
        let good = br#"{"account": "ada", "amount": 2500, "reference": "order-1"}"#;
        assert_eq!(PaymentOrder::parse(good).unwrap().amount, Cents(2500));
        for bad in [
            "",
            "[]",
            r#"{"account": "ada", "amount": 2500}"#,
            r#"{"account": "", "amount": 2500, "reference": "order-1"}"#,
            r#"{"account": "ada", "amount": 0, "reference": "order-1"}"#,
            r#"{"account": "ada", "amount": -1, "reference": "order-1"}"#,
            r#"{"account": "ada", "amount": 1000001, "reference": "order-1"}"#,
            r#"{"account": "ada", "amount": 2500, "reference": "order-1", "tip": 1}"#,
        ] {
            assert!(PaymentOrder::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
