//! The API's page: the ledgers side by side, and buttons that pay through the gateway.

use std::{fmt::Write, sync::Arc};

use super::{
    ledger::{Balance, Charge, Ledger},
    order::counted,
};

/// Everything is in the page itself; nothing is fetched from anybody else.
pub(super) const SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                          script-src 'unsafe-inline'; connect-src 'self'";
/// Most charges that are shown.
const SHOWN_MAX: usize = 25;
const TEMPLATE: &str = include_str!("page.html");

/// A ledger that the page sums up.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) ledger: Arc<Ledger>,
}

/// The page, with the newest charges of this ledger.
pub(super) fn render(shown: &[Shown], ledger: &Ledger) -> String {
    let cards: String = shown.iter().map(card).collect();
    let rows: String = ledger.newest(SHOWN_MAX).iter().map(row).collect();
    TEMPLATE.replace("<!-- cards -->", &cards).replace("<!-- rows -->", &rows)
}

fn card(shown: &Shown) -> String {
    let Balance { charges, payments, charged_twice, too_much } = shown.ledger.balance();
    let class = if charges == payments { "well" } else { "ill" };
    format!(
        "<section class=\"{class}\"><h2>{name}</h2><p class=\"figure\">{charges} <span>charges for \
         {payments} payments</span></p><p>{charged_twice} charged twice, {too_much} too much</p>\
         </section>",
        name = shown.name,
        charges = counted(charges),
        payments = counted(payments),
        charged_twice = counted(charged_twice),
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
    use crate::demo::order::{Cents, Order};

    #[test]
    fn what_customers_write_stays_text() {
        let ledger = Arc::new(Ledger::default());
        let account = "<script>alert(1)</script>".to_owned();
        let reference = "a\"&\u{1}b".to_owned();
        ledger.charge(Order { account, amount: Cents(2500), reference });
        let shown = [Shown { name: "with Hapax", ledger: Arc::clone(&ledger) }];
        let page = render(&shown, &ledger);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("a&quot;&amp;\\u0001b") && page.contains("$25.00"), "{page}");
        assert!(!page.contains("<script>alert"), "{page}");
    }

    #[test]
    fn the_page_asks_nobody_else_for_anything() {
        for outside in ["http://", "https://", "//cdn", "@import", "url("] {
            assert!(!TEMPLATE.contains(outside), "{outside}");
        }
    }
}
