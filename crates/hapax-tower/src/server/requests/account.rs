//! For which of its accounts a caller asks, where the dialect has a header that says so.

use hapax_core::Scope;
use http::{HeaderMap, HeaderName};

use crate::server::{
    dialect::Dialect,
    requests::headers,
    responses::{code::Code, problem::Problem},
};

/// Stripe's: keys belong to the account that is asked for.
static OF_STRIPE: [HeaderName; 2] =
    [HeaderName::from_static("stripe-account"), HeaderName::from_static("stripe-context")];

fn headers_of(dialect: &Dialect) -> &'static [HeaderName] {
    match dialect {
        Dialect::Stripe => &OF_STRIPE,
        Dialect::Header(_) | Dialect::Repeatability | Dialect::Paypal | Dialect::Adyen => &[],
    }
}

/// Refuses what names no account clearly, or only on the way to this hop.
pub(crate) fn check(dialect: &Dialect, headers: &HeaderMap) -> Result<(), Problem> {
    let names = headers_of(dialect);
    if names.is_empty() {
        return Ok(());
    }
    let of_this_connection = headers::named_by_connection(headers);
    for name in names {
        let lines = headers.get_all(name).iter();
        if lines.count() > 1 || named(headers, name).is_none() {
            let detail = format!("Send {name} once, with the name of one account.");
            return Err(Problem::new(Code::TargetUnclear, detail));
        }
        if of_this_connection.contains(name) {
            let detail = "Connection names the account, which would keep it from the service.";
            return Err(Problem::new(Code::TargetUnclear, detail));
        }
    }
    Ok(())
}

/// The scope within the account that is asked for; `None` if the two together are too long.
pub(crate) fn within(dialect: &Dialect, headers: &HeaderMap, scope: Scope) -> Option<Scope> {
    let names = headers_of(dialect);
    if names.is_empty() {
        return Some(scope);
    }
    let mut prefix = String::new();
    for name in names {
        prefix.push(MARK);
        prefix.push_str(named(headers, name)?);
    }
    if prefix.trim_matches(MARK).is_empty() {
        return Some(scope);
    }
    Scope::parse([prefix.trim_end_matches(MARK), " ", scope.as_str()].concat()).ok()
}

/// A scope without the account it is within.
pub(crate) fn left_out(scope: &str) -> &str {
    let within = scope.strip_prefix(MARK).and_then(|named| named.split_once(' '));
    within.map_or(scope, |(_, within)| within)
}

/// Stands before each account; no name of an account has one.
const MARK: char = '@';

/// What a header names, empty if it is not there; `None` if that is no name of an account.
fn named<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let Some(value) = headers.get(name) else { return Some("") };
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte);
    value.to_str().ok().filter(|value| value.bytes().all(is_of_names))
}
