//! What was asked for once more and not done again, in money.

use std::collections::BTreeMap;

use hapax_tower::{Currency, RepeatedWorth};

/// Most currencies that are told apart on a route: what clients write must not make endless labels.
const CURRENCIES_MAX: usize = 64;
/// What an amount is one of where nobody says so.
const NO_CURRENCY: &str = "none";

/// What the repeated requests of one route would have cost once more.
#[derive(Debug, Clone, Default)]
pub(in crate::admin) struct RepeatedSums {
    /// In millionths, by currency.
    money: BTreeMap<Option<Currency>, u64>,
    /// Requests that did not say what they are worth.
    untold: u64,
}

impl RepeatedSums {
    pub(in crate::admin) fn count(&mut self, worth: RepeatedWorth) {
        match worth {
            RepeatedWorth::Told(money) if self.has_room_for(money.currency) => {
                self.add_money(money.currency, money.millionths);
            }
            RepeatedWorth::Told(_) | RepeatedWorth::Untold => self.untold += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (currency, millionths) in &other.money {
            self.add_money(*currency, *millionths);
        }
        self.untold += other.untold;
    }

    /// Whether anything was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.money.is_empty() && self.untold == 0
    }

    pub(in crate::admin) fn untold(&self) -> u64 {
        self.untold
    }

    /// Each currency with its amount.
    pub(in crate::admin) fn amounts(&self) -> impl Iterator<Item = (&str, f64)> {
        self.money.iter().map(|(currency, millionths)| {
            let code = currency.as_ref().map_or(NO_CURRENCY, Currency::as_str);
            (code, whole(*millionths))
        })
    }

    fn has_room_for(&self, currency: Option<Currency>) -> bool {
        self.money.len() < CURRENCIES_MAX || self.money.contains_key(&currency)
    }

    fn add_money(&mut self, currency: Option<Currency>, millionths: u64) {
        let sum = self.money.entry(currency).or_default();
        *sum = sum.saturating_add(millionths);
    }
}

#[expect(clippy::cast_precision_loss, reason = "nine thousand millions to the millionth")]
fn whole(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use hapax_tower::Money;

    use super::*;

    fn told(code: &str, millionths: u64) -> RepeatedWorth {
        RepeatedWorth::Told(Money { millionths, currency: Currency::parse(code) })
    }

    #[test]
    fn amounts_are_summed_by_currency() {
        let mut sums = RepeatedSums::default();
        let worth = [told("EUR", 1_500_000), told("EUR", 250_000), told("?", 7_000_000)];
        worth.into_iter().chain([RepeatedWorth::Untold]).for_each(|worth| sums.count(worth));
        let mut twice = sums.clone();
        twice.add(&sums);
        assert_eq!(twice.amounts().collect::<Vec<_>>(), [("none", 14.0), ("EUR", 3.5)]);
        assert_eq!(twice.untold(), 2);
    }

    #[test]
    fn what_clients_call_currencies_makes_no_endless_labels() {
        let mut sums = RepeatedSums::default();
        for (one, other) in ('A'..='Z').flat_map(|one| ('A'..='Z').map(move |other| (one, other))) {
            sums.count(told(&format!("X{one}{other}"), 1));
        }
        assert_eq!(sums.amounts().count(), CURRENCIES_MAX);
        assert_eq!(sums.untold(), 26 * 26 - 64, "and none is lost");
    }
}
