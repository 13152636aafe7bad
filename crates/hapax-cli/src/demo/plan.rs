//! Who wants to pay what, and what goes wrong: all of it from one seed.

use std::{collections::HashSet, time::Duration};

use fastrand::Rng;

use super::order::{Cents, PaymentOrder};

/// Over what time the payments begin.
const SPAN: Duration = Duration::from_secs(4);
/// Longest a prompt answer takes: well within every client's patience.
const PROMPT_MILLIS_MAX: u64 = 30;
/// How long a late answer takes: longer than any client's patience.
const LATE_MILLIS: std::ops::RangeInclusive<u64> = 400..=700;

/// One bad day.
#[derive(Debug)]
pub(super) struct DayPlan {
    pub(super) payments: Vec<PlannedPayment>,
}

/// A payment that is wanted once.
#[derive(Debug, Clone)]
pub(super) struct PlannedPayment {
    pub(super) order: PaymentOrder,
    /// When its client first asks for it.
    pub(super) begins_after: Duration,
    pub(super) manner: Manner,
    /// How the API answers the first requests for it; further ones promptly.
    pub(super) answers: Vec<ApiReply>,
    /// For the pauses between its tries.
    pub(super) seed: u64,
}

/// How a client goes about a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It gives up early and tries again.
    Retries,
    /// It dies while it waits, and another one goes on from its note.
    Dies,
    /// It sends the request several times at once.
    Crowds,
    /// When it has paid, it asks for another amount under the same key.
    Mistakes,
}

/// What the API does with a request once it has made the charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiReply {
    Promptly(Duration),
    Late(Duration),
    /// The connection is dropped.
    Never,
}

impl DayPlan {
    pub(super) fn new(seed: u64, payments: u16) -> Self {
        let mut dice = Rng::with_seed(seed);
        let count = u32::from(payments);
        let manners = manners(count, &mut dice);
        let customers = count.div_ceil(2);
        let payment = |(number, manner): (u32, Manner)| {
            let account = format!("customer-{:03}", dice.u32(1..=customers));
            let reference = format!("order-{:04}", number + 1);
            let order = PaymentOrder { account, amount: Cents(dice.u64(500..10_000)), reference };
            // For some minutes of the day, everything is slow.
            let in_slow_spell = (count * 2 / 5..count * 11 / 20).contains(&number);
            let jitter = Duration::from_millis(dice.u64(0..100));
            PlannedPayment {
                order,
                begins_after: SPAN * number / count + jitter,
                answers: answers(manner, in_slow_spell, &mut dice),
                manner,
                seed: dice.u64(..),
            }
        };
        Self { payments: (0..count).zip(manners).map(payment).collect() }
    }

    /// How many clients go about it in this manner.
    pub(super) fn count(&self, manner: Manner) -> usize {
        self.payments.iter().filter(|payment| payment.manner == manner).count()
    }

    pub(super) fn customers(&self) -> usize {
        let accounts = self.payments.iter().map(|payment| &payment.order.account);
        accounts.collect::<HashSet<_>>().len()
    }
}

/// A manner for each payment; with four payments or more, each occurs.
fn manners(count: u32, dice: &mut Rng) -> Vec<Manner> {
    let shares = [(Manner::Crowds, 8), (Manner::Dies, 10), (Manner::Mistakes, 30)];
    let mut manners = Vec::new();
    for (manner, one_in) in shares {
        manners.extend((0..(count / one_in).max(1)).map(|_| manner));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    manners.resize(count, Manner::Retries);
    dice.shuffle(&mut manners);
    manners
}

fn answers(manner: Manner, in_slow_spell: bool, dice: &mut Rng) -> Vec<ApiReply> {
    let promptly = ApiReply::Promptly(Duration::from_millis(dice.u64(5..=PROMPT_MILLIS_MAX)));
    let late = ApiReply::Late(Duration::from_millis(dice.u64(LATE_MILLIS)));
    let chance = dice.u32(0..100);
    let first = match manner {
        // There is nothing to see in them if the answer is there at once.
        Manner::Dies | Manner::Crowds => late,
        Manner::Retries | Manner::Mistakes if in_slow_spell => late,
        Manner::Retries | Manner::Mistakes => match chance {
            0..15 => ApiReply::Never,
            15..35 => late,
            _ => promptly,
        },
    };
    let second = if dice.u32(0..100) < 20 { late } else { promptly };
    vec![first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_day_and_another_seed_another() {
        let day = |seed| format!("{:?}", DayPlan::new(seed, 40));
        assert_eq!(day(7), day(7));
        assert_ne!(day(7), day(8));
    }

    #[test]
    fn a_small_day_has_everything_that_can_go_wrong() {
        for seed in 0..50 {
            let plan = DayPlan::new(seed, 20);
            assert_eq!(plan.payments.len(), 20);
            for manner in [Manner::Retries, Manner::Dies, Manner::Crowds, Manner::Mistakes] {
                assert!(plan.count(manner) > 0, "{manner:?} with seed {seed}");
            }
            let first = plan.payments.iter().map(|payment| payment.answers[0]);
            let late = first.filter(|answer| matches!(answer, ApiReply::Late(_)));
            assert!(late.count() >= 4, "seed {seed}");
        }
    }

    #[test]
    fn any_number_of_payments_is_planned_and_each_has_its_own_reference() {
        for count in [1, 2, 3, 4, 61, 1000] {
            let plan = DayPlan::new(1, count);
            let references = plan.payments.iter().map(|payment| &payment.order.reference);
            assert_eq!(references.collect::<HashSet<_>>().len(), usize::from(count));
        }
    }
}
