//! What a payments API has charged. The demo believes it, and nobody else.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use super::{
    order::{Cents, PaymentOrder},
    plan::{DayPlan, PlannedPayment},
};

/// Every charge, in order.
#[derive(Debug, Default)]
pub(super) struct ChargeLedger(Mutex<Vec<Charge>>);

/// Money taken from an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Charge {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) order: PaymentOrder,
}

/// What the charges come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Balance {
    pub(super) charges: usize,
    /// References that were charged at least once.
    pub(super) payments: usize,
    /// Accounts charged more than once for one reference.
    pub(super) charged_twice: usize,
    /// What was taken after the first charge of each reference.
    pub(super) too_much: Cents,
}

impl ChargeLedger {
    /// Takes the money. How often it was taken before does not matter to it.
    pub(super) fn charge(&self, order: PaymentOrder) -> Charge {
        let mut charges = self.charges();
        let charge = Charge { id: format!("pay_{:05}", charges.len() + 1), order };
        charges.push(charge.clone());
        charge
    }

    pub(super) fn by_reference(&self, reference: &str) -> Option<Charge> {
        self.charges().iter().find(|charge| charge.order.reference == reference).cloned()
    }

    /// How often this reference was charged.
    pub(super) fn times(&self, reference: &str) -> usize {
        self.charges().iter().filter(|charge| charge.order.reference == reference).count()
    }

    /// How often each reference was charged.
    pub(super) fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for Charge { order, .. } in self.charges().iter() {
            *counts.entry(order.reference.clone()).or_default() += 1;
        }
        counts
    }

    /// The newest charges, the last one first.
    pub(super) fn newest(&self, most: usize) -> Vec<Charge> {
        self.charges().iter().rev().take(most).cloned().collect()
    }

    pub(super) fn balance(&self) -> Balance {
        let charges = self.charges();
        let (mut references, mut twice) = (HashSet::new(), HashSet::new());
        let mut too_much = Cents(0);
        for Charge { order, .. } in charges.iter() {
            if !references.insert(&order.reference) {
                twice.insert(&order.account);
                too_much.0 += order.amount.0;
            }
        }
        Balance {
            charges: charges.len(),
            payments: references.len(),
            charged_twice: twice.len(),
            too_much,
        }
    }

    /// What keeps this from being every payment of the plan, once and as wanted, and nothing else.
    pub(super) fn faults(&self, plan: &DayPlan) -> Vec<String> {
        let charges = self.charges();
        let mut found = HashMap::<_, Vec<_>>::new();
        for Charge { order, .. } in charges.iter() {
            found.entry(&order.reference).or_default().push(order);
        }
        let mut faults = Vec::new();
        for PlannedPayment { order, .. } in &plan.payments {
            match found.remove(&order.reference).unwrap_or_default().as_slice() {
                [once] if *once == order => {}
                [once] => faults
                    .push(format!("{}: {}, not {}", order.reference, once.amount, order.amount)),
                many => faults.push(format!("{}: charged {} times", order.reference, many.len())),
            }
        }
        faults.extend(found.keys().map(|reference| format!("{reference}: never asked for")));
        faults
    }

    /// A charge is one push, so a poisoned ledger is still right.
    fn charges(&self) -> MutexGuard<'_, Vec<Charge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charged(plan: &DayPlan) -> ChargeLedger {
        let ledger = ChargeLedger::default();
        for payment in &plan.payments {
            ledger.charge(payment.order.clone());
        }
        ledger
    }

    #[test]
    fn one_charge_for_each_payment_is_exact_and_takes_nothing_too_much() {
        let plan = DayPlan::new(1, 20);
        let ledger = charged(&plan);
        assert_eq!(ledger.faults(&plan), [""; 0]);
        let balance = ledger.balance();
        assert_eq!((balance.charges, balance.payments), (20, 20));
        assert_eq!((balance.charged_twice, balance.too_much), (0, Cents(0)));
    }

    #[test]
    fn a_charge_more_less_or_of_another_amount_is_a_fault() {
        let plan = DayPlan::new(1, 20);
        let order = plan.payments[3].order.clone();
        let twice = charged(&plan);
        twice.charge(order.clone());
        assert_eq!(twice.faults(&plan), ["order-0004: charged 2 times"]);
        let balance = twice.balance();
        assert_eq!((balance.charged_twice, balance.too_much), (1, order.amount));

        let mut other = DayPlan::new(1, 20);
        other.payments[3].order.amount = Cents(100);
        other.payments[5].order.reference = "order-x".to_owned();
        let expected = [
            format!("order-0004: $1.00, not {}", order.amount),
            "order-0006: charged 0 times".to_owned(),
            "order-x: never asked for".to_owned(),
        ];
        assert_eq!(charged(&other).faults(&plan), expected);
    }
}
