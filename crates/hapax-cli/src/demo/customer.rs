//! A customer's clients, who want one payment and do not stop before they know it is made.

use std::{ops::AddAssign, time::Duration};

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::{
    client::{TryResult, ask},
    order::PaymentOrder,
    plan::{Manner, PlannedPayment},
    traffic::Storefront,
};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a client lives that dies while it waits.
const DIES_AFTER: Duration = Duration::from_millis(120);
/// Until somebody finds the note of a client that died.
const NOTE_FOUND_AFTER: Duration = Duration::from_millis(300);
/// The first pause between two tries; it doubles three times.
const PAUSE: Duration = Duration::from_millis(40);
/// When a payment is given up. Never reached unless something is broken.
const GIVES_UP_AFTER: Duration = Duration::from_secs(60);

/// What clients saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CustomerView {
    pub(super) requests: u64,
    pub(super) retries: u64,
    /// Requests that told their client nothing: timeouts, broken connections, failures.
    pub(super) in_vain: u64,
    pub(super) replays: u64,
    pub(super) busy: u64,
    pub(super) reused: u64,
    /// Payments that were given up.
    pub(super) given_up: u64,
}

impl AddAssign for CustomerView {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.retries += more.retries;
        self.in_vain += more.in_vain;
        self.replays += more.replays;
        self.busy += more.busy;
        self.reused += more.reused;
        self.given_up += more.given_up;
    }
}

/// Makes a payment in its manner, beginning when it should.
pub(super) async fn pay(shop: &Storefront, payment: &PlannedPayment) -> CustomerView {
    sleep(payment.begins_after).await;
    let mut dice = Rng::with_seed(payment.seed);
    let order = &payment.order;
    let mut seen = CustomerView::default();
    match payment.manner {
        Manner::Retries => seen += persist(shop, order, dice, Try::First).await,
        Manner::Dies => {
            // The note, with the key on it, was written before the first byte was sent.
            seen += CustomerView::of(ask(shop, order, DIES_AFTER).await, Try::First);
            sleep(NOTE_FOUND_AFTER).await;
            seen += persist(shop, order, dice, Try::Again).await;
        }
        Manner::Crowds => {
            let (second, third) = (dice.fork(), dice.fork());
            let crowd = tokio::join!(
                persist(shop, order, dice, Try::First),
                persist(shop, order, second, Try::Again),
                persist(shop, order, third, Try::Again),
            );
            for client in <[CustomerView; 3]>::from(crowd) {
                seen += client;
            }
        }
        Manner::Mistakes => {
            seen += persist(shop, order, dice.fork(), Try::First).await;
            let mut dearer = order.clone();
            dearer.amount.0 += 700;
            seen += persist(shop, &dearer, dice, Try::First).await;
        }
    }
    seen
}

/// Whether a request was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Try {
    First,
    Again,
}

/// Asks until it is known what became of the order.
pub(super) async fn persist(
    shop: &Storefront,
    order: &PaymentOrder,
    mut dice: Rng,
    first: Try,
) -> CustomerView {
    let until = Instant::now() + GIVES_UP_AFTER;
    let (mut seen, mut nth, mut pause) = (CustomerView::default(), first, PAUSE);
    while Instant::now() < until {
        let heard = ask(shop, order, PATIENCE).await;
        seen += CustomerView::of(heard, nth);
        let asked_for = match heard {
            TryResult::Paid { .. } | TryResult::Reused => return seen,
            TryResult::Busy { retry_after } => retry_after,
            TryResult::Failure | TryResult::Nothing => Duration::ZERO,
        };
        sleep(asked_for + pause.mul_f64(0.5 + dice.f64() / 2.0)).await;
        pause = (pause * 2).min(PAUSE * 8);
        nth = Try::Again;
    }
    seen.given_up += 1;
    seen
}

impl CustomerView {
    fn of(heard: TryResult, nth: Try) -> Self {
        let one = |yes: bool| u64::from(yes);
        Self {
            requests: 1,
            retries: one(nth == Try::Again),
            in_vain: one(matches!(heard, TryResult::Failure | TryResult::Nothing)),
            replays: one(heard == TryResult::Paid { replayed: true }),
            busy: one(matches!(heard, TryResult::Busy { .. })),
            reused: one(heard == TryResult::Reused),
            given_up: 0,
        }
    }
}
