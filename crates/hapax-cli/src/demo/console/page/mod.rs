//! What a browser gets: one page with everything in it.

use std::{fmt::Write, io};

use http::HeaderValue;

use super::Context;
use crate::demo::{
    Venue,
    error::DemoError,
    gateway::random_token,
    ledger::{Balance, Charge, ChargeLedger},
    order::counted,
};

/// Most charges that are shown.
const CHARGES_SHOWN_MAX: usize = 12;
const TEMPLATE: &str = include_str!("page.html");
const STYLE: &[&str] = &[include_str!("style.css"), include_str!("keys.css")];
const SCRIPT: &[&str] = &[
    include_str!("basics.js"),
    include_str!("gateway.js"),
    include_str!("orders.js"),
    include_str!("storm.js"),
    include_str!("keys.js"),
    include_str!("refresh.js"),
];

/// The page, and what it may do.
#[derive(Debug)]
pub(super) struct RenderedPage {
    pub(super) html: String,
    /// Its `Content-Security-Policy`.
    pub(super) policy: HeaderValue,
}

pub(super) fn render(context: &Context) -> Result<RenderedPage, DemoError> {
    let nonce = random_token()?;
    let cards = cards(&[&context.direct, &context.behind]);
    let html = TEMPLATE
        .replace("/* style */", &STYLE.concat())
        .replace("/* script */", &SCRIPT.concat())
        .replace("{nonce}", &nonce)
        .replace("{token}", &context.access.token)
        .replace("<!-- cards -->", &cards)
        .replace("<!-- charges -->", &charges(&context.behind.ledger));
    let policy = HeaderValue::try_from(policy(&nonce)).map_err(io::Error::other);
    Ok(RenderedPage { html, policy: policy.map_err(DemoError::Page)? })
}

/// Everything is in the page itself; nothing is fetched from anybody else, and nobody frames it.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// What each shop charged.
pub(super) fn cards(venues: &[&Venue]) -> String {
    venues.iter().map(|venue| card(venue.name, &venue.ledger.balance())).collect()
}

/// The newest charges of a ledger.
pub(super) fn charges(ledger: &ChargeLedger) -> String {
    ledger.newest(CHARGES_SHOWN_MAX).iter().map(row).collect()
}

fn card(name: &str, balance: &Balance) -> String {
    let Balance { charges, payments, charged_twice, too_much } = balance;
    let class = if charges == payments { "well" } else { "ill" };
    format!(
        "<div class=\"card {class}\"><h3>{name}</h3><p class=\"figure\">{charges} <span>charges for \
         {payments} payments</span></p><p>{charged_twice} charged twice, {too_much} too much</p>\
         </div>",
        charges = counted(*charges),
        payments = counted(*payments),
        charged_twice = counted(*charged_twice),
    )
}

fn row(Charge { id, order }: &Charge) -> String {
    let (id, account) = (escaped(id), escaped(&order.account));
    let (reference, amount) = (escaped(&order.reference), order.amount);
    format!(
        "<tr><td>{id}</td><td>{reference}</td><td>{account}</td><td class=\"amount\">{amount}</td></tr>"
    )
}

/// Text that stays text in a page: anybody can choose the name of an account.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // Writing to a string does not fail.
            c if c.is_control() => drop(write!(safe, "\\u{:04x}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::order::{Cents, PaymentOrder};

    #[test]
    fn what_customers_write_stays_text() {
        let ledger = ChargeLedger::default();
        let account = "<script>alert(1)</script>".to_owned();
        let reference = "a\"&\u{1}b".to_owned();
        ledger.charge(PaymentOrder { account, amount: Cents(2500), reference });
        let page = card("with Hapax", &ledger.balance()) + &charges(&ledger);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("a&quot;&amp;\\u0001b") && page.contains("$25.00"), "{page}");
        assert!(!page.contains("<script>alert"), "{page}");
    }

    #[test]
    fn the_page_asks_nobody_else_for_anything() {
        for part in [&[TEMPLATE], STYLE, SCRIPT].concat() {
            for outside in ["http://", "https://", "//cdn", "@import", "url("] {
                assert!(!part.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn the_page_puts_text_into_elements_and_never_markup_of_its_own_making() {
        let script = SCRIPT.concat();
        for way in ["document.write", "eval(", "insertAdjacentHTML", "outerHTML", " style="] {
            assert!(!script.contains(way), "{way}");
        }
        // The shop's books, which are escaped before they are sent.
        assert_eq!(script.matches("innerHTML").count(), 1);
    }
}
