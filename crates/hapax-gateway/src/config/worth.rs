//! Where requests of a route say what they are worth.

use hapax_tower::{Currency, WorthCurrency, WorthRule};
use toml::Spanned;

use super::reader::TableReader;

/// Most decimals of an amount.
const DECIMALS_MAX: u32 = 9;

/// What a route says about the worth of its requests.
pub(super) fn read(route: &TableReader<'_>) -> Option<WorthRule> {
    let amount = route.parsed("amount", |text| pointer(text, "/amount")).map(Spanned::into_inner);
    let decimals = route.count("amount_decimals", DECIMALS_MAX).map(Spanned::into_inner);
    let currency = route.parsed("currency", currency).map(Spanned::into_inner);
    if !route.has("amount") {
        for name in ["amount_decimals", "currency"] {
            if route.has(name) {
                let what = format!("`{name}` means nothing here");
                let advice = "write `amount = \"/amount\"` too, or leave it out";
                route.fault(route.place(name), format!("{what}; {advice}"));
            }
        }
    }
    let decimals = decimals.and_then(|decimals| u8::try_from(decimals).ok()).unwrap_or(0);
    Some(WorthRule { amount: amount?, decimals, currency })
}

/// A JSON pointer, such as `example`.
pub(super) fn pointer(text: &str, example: &str) -> Result<String, String> {
    let advice = format!("write a JSON pointer, such as {example:?}, instead");
    let refusal = || format!("cannot be {text:?}; {advice}");
    text.starts_with('/').then(|| text.to_owned()).ok_or_else(refusal)
}

fn currency(text: &str) -> Result<WorthCurrency, String> {
    if text.starts_with('/') {
        return Ok(WorthCurrency::At(text.to_owned()));
    }
    Currency::parse(text).map(WorthCurrency::Always).ok_or_else(|| {
        let advice = "write a code, such as \"EUR\", or a JSON pointer, such as \"/currency\",";
        format!("cannot be {text:?}; {advice} instead")
    })
}
