//! What came out, as a table for people who do not read code.

use std::io::{self, Write};

use super::{
    WITH, WITHOUT,
    customer::CustomerView,
    ledger::Balance,
    order::{counted, grouped},
};

/// One day at both places.
#[derive(Debug)]
pub(super) struct DayReport {
    pub(super) payments: usize,
    pub(super) customers: usize,
    pub(super) without: Side,
    pub(super) with: Side,
    /// Where the ledger behind the gateway is not one charge for each payment.
    pub(super) faults: Vec<String>,
    pub(super) kills: u64,
}

/// What happened at one place.
#[derive(Debug)]
pub(super) struct Side {
    /// By what the clients saw.
    pub(super) seen: CustomerView,
    /// By the ledger.
    pub(super) balance: Balance,
}

/// A line of the table: what is counted, without Hapax and with it.
type Row = (&'static str, String, String);

impl DayReport {
    /// One charge for each payment, and no customer left in the dark.
    pub(super) fn is_well(&self) -> bool {
        self.faults.is_empty() && self.with.seen.given_up == 0
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out)?;
        let rows = self.rows();
        let names = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
        let line = |name: &str, without: &str, with: &str| {
            format!("  {name:names$}  {without:>13}  {with:>12}")
        };
        writeln!(out, "{}", line("", WITHOUT, WITH))?;
        for (name, without, with) in &rows {
            writeln!(out, "{}", line(name, without, with))?;
        }
        writeln!(out, "\n{}\n", self.verdict())?;
        writeln!(out, "{HOW}\n")?;
        out.flush()
    }

    fn rows(&self) -> Vec<Row> {
        let both = |name, of: fn(&Side) -> String| (name, of(&self.without), of(&self.with));
        let only_with = |name, number| (name, "-".to_owned(), grouped(number));
        let wanted = counted(self.payments);
        let seen = &self.with.seen;
        let mut rows = vec![
            ("payments wanted", wanted.clone(), wanted),
            both("requests sent", |side| grouped(side.seen.requests)),
            both("  of them retries", |side| grouped(side.seen.retries)),
            both("  without a usable answer", |side| grouped(side.seen.in_vain)),
            both("charges made", |side| counted(side.balance.charges)),
            both("customers charged twice", |side| counted(side.balance.charged_twice)),
            both("money taken too much", |side| side.balance.too_much.to_string()),
            only_with("retries answered from the record", seen.replays),
            only_with("told \"it is being worked on\" (409)", seen.busy),
            only_with("told \"that key is taken\" (422)", seen.reused),
            only_with("gateway killed and restarted", self.kills),
        ];
        if self.without.seen.given_up + seen.given_up > 0 {
            rows.push(both("given up without knowing", |side| grouped(side.seen.given_up)));
        }
        rows
    }

    fn verdict(&self) -> String {
        let Balance { charged_twice, too_much, .. } = self.without.balance;
        let Self { payments, customers, kills, faults, .. } = self;
        let without = format!(
            "Without Hapax, {charged_twice} of {customers} customers paid more than once: \
             {too_much} too much."
        );
        let with = if self.is_well() {
            let times = if *kills == 1 { "time" } else { "times" };
            format!(
                "With Hapax, {payments} of {payments} payments were charged exactly once, \
                 the gateway killed {kills} {times}."
            )
        } else {
            let given_up = self.with.seen.given_up;
            format!(
                "FAILED: behind the gateway, payments that were not charged exactly once: {}; \
                 given up: {given_up}. {}",
                faults.len(),
                faults.join(", "),
            )
        };
        format!("{without}\n{with}")
    }
}

const HOW: &str = "\
How: a key is claimed on disk before its request is sent. When an answer is lost or the gateway dies,
it asks the API (GET /payments/by-reference/{key}) whether the charge was made, and only then answers
or sends it.";
