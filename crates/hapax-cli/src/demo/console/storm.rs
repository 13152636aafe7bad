//! A storm: many orders, each sent by several clients that do not stop before they are answered, at
//! both shops at once.

use std::{
    collections::HashSet,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{Context, refusal::ActionRefusal, supervisor::KilledBy};
use crate::demo::{
    Venue,
    customer::{CustomerView, Try, persist},
    order::{Cents, PaymentOrder},
    plan::{ApiReply, Manner, PlannedPayment},
    traffic::Storefront,
};

pub(super) const STORM_ORDERS_MAX: usize = 100;
/// Most clients that send the same order.
pub(super) const COPIES_MAX: usize = 10;
/// How long a storm may take; what is not answered then is given up.
const STORM_LIMIT: Duration = Duration::from_secs(60);
/// Over what time the orders begin.
const SPAN: Duration = Duration::from_millis(2_500);
/// Longer than any client's patience.
const LATE_MILLIS: RangeInclusive<u64> = 400..=700;

/// What somebody wants to see.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StormRequest {
    orders: usize,
    /// How many clients send each order.
    copies: usize,
    /// Whether the gateway is killed in the middle.
    kill: bool,
}

/// The latest storm, if there was any.
#[derive(Debug, Default)]
pub(super) struct StormSlot(Mutex<Option<Arc<StormRun>>>);

/// One storm, under way or over.
#[derive(Debug)]
struct StormRun {
    request: StormRequest,
    references: HashSet<String>,
    began: Instant,
    /// Clients behind the gateway that have their answer.
    done: watch::Sender<usize>,
    ended: Mutex<Option<StormEnd>>,
}

#[derive(Debug, Clone, Copy)]
struct StormEnd {
    took: Duration,
    killed: bool,
    /// Clients that never heard what became of their order, without the gateway and with it.
    given_up: [usize; 2],
}

/// What is shown of a storm.
#[derive(Debug, Serialize)]
pub(super) struct StormView {
    #[serde(flatten)]
    request: StormRequest,
    clients: usize,
    done: usize,
    under_way: bool,
    killed: bool,
    seconds: f32,
    without: StormSide,
    with: StormSide,
}

/// What a storm came to at one shop, by its ledger.
#[derive(Debug, Serialize)]
struct StormSide {
    requests: u64,
    charges: usize,
    /// Orders that were charged more than once.
    doubled: usize,
    /// Orders that were not charged.
    missing: usize,
    given_up: usize,
}

/// Starts a storm. Refused while there is one.
pub(super) fn start(context: &Arc<Context>, request: StormRequest) -> Result<(), ActionRefusal> {
    let StormRequest { orders, copies, .. } = request;
    if !(1..=STORM_ORDERS_MAX).contains(&orders) || !(1..=COPIES_MAX).contains(&copies) {
        return Err(ActionRefusal::StormSize);
    }
    context.has_room_for(orders)?;
    let mut slot = context.storm.lock();
    if slot.as_ref().is_some_and(|storm| storm.is_under_way()) {
        return Err(ActionRefusal::StormUnderWay);
    }
    let payments = payments(orders, &mut Rng::new());
    let storm = Arc::new(StormRun {
        request,
        references: payments.iter().map(|payment| payment.order.reference.clone()).collect(),
        began: Instant::now(),
        done: watch::Sender::new(0),
        ended: Mutex::default(),
    });
    *slot = Some(Arc::clone(&storm));
    drop(slot);
    for venue in [&context.direct, &context.behind] {
        venue.api.plan_answers(&payments);
    }
    tokio::spawn(run(Arc::clone(context), storm, Arc::new(payments)));
    Ok(())
}

async fn run(context: Arc<Context>, storm: Arc<StormRun>, payments: Arc<Vec<PlannedPayment>>) {
    let copies = storm.request.copies;
    let direct = context.direct.storefront(context.direct.api.address);
    let behind = context.behind.storefront(context.supervisor.address);
    let ignored = watch::Sender::new(0);
    let both = async {
        tokio::join!(
            send_all(&direct, &payments, copies, &ignored),
            send_all(&behind, &payments, copies, &storm.done),
        )
    };
    let mut killed = false;
    let ended = timeout(STORM_LIMIT, async {
        tokio::pin!(both);
        if storm.request.kill {
            tokio::select! {
                ended = &mut both => return ended,
                success = kill(&context, &storm) => killed = success,
            }
        }
        both.await
    });
    let ended = ended.await;
    let given_up = match ended {
        Ok((direct, behind)) => [direct, behind],
        Err(_) => {
            let silent = |done: usize| storm.clients() - done.min(storm.clients());
            [silent(*ignored.borrow()), silent(*storm.done.borrow())]
        }
    };
    let took = storm.began.elapsed();
    *storm.ended() = Some(StormEnd { took, killed, given_up });
}

/// Lets every client send its order until it is answered. Tells how many gave up.
async fn send_all(
    shop: &Storefront,
    payments: &Arc<Vec<PlannedPayment>>,
    copies: usize,
    done: &watch::Sender<usize>,
) -> usize {
    let mut clients = JoinSet::new();
    for number in 0..payments.len() {
        for copy in 0..copies {
            let (shop, payments) = (shop.clone(), Arc::clone(payments));
            clients.spawn(async move {
                let PlannedPayment { order, begins_after, seed, .. } = &payments[number];
                let mut dice = Rng::with_seed(*seed ^ u64::try_from(copy).unwrap_or_default());
                sleep(*begins_after + Duration::from_millis(dice.u64(0..100))).await;
                persist(&shop, order, dice, Try::First).await
            });
        }
    }
    let mut given_up = 0;
    while let Some(one) = clients.join_next().await {
        given_up += usize::from(!one.is_ok_and(|CustomerView { given_up, .. }| given_up == 0));
        done.send_modify(|done| *done += 1);
    }
    given_up
}

/// Kills the gateway in the middle, when a charge is made and not yet answered.
async fn kill(context: &Arc<Context>, storm: &StormRun) -> bool {
    let enough = storm.request.orders / 4 * storm.request.copies;
    let mut done = storm.done.subscribe();
    let mut withheld = context.behind.api.withheld();
    let is_half_way = done.wait_for(|done| *done >= enough).await.is_ok();
    let is_time = is_half_way && withheld.wait_for(|withheld| *withheld > 0).await.is_ok();
    is_time && context.supervisor.kill(KilledBy::Storm).is_ok()
}

fn payments(orders: usize, dice: &mut Rng) -> Vec<PlannedPayment> {
    let storm: String = std::iter::repeat_with(|| dice.lowercase()).take(4).collect();
    let payment = |number: usize| {
        let answering = match number {
            // The last one too, so that there is always one to interrupt.
            _ if number.is_multiple_of(3) || number + 1 == orders => {
                ApiReply::Late(Duration::from_millis(dice.u64(LATE_MILLIS)))
            }
            _ if number % 7 == 4 => ApiReply::Never,
            _ => ApiReply::Promptly(Duration::from_millis(dice.u64(5..=30))),
        };
        let share = |number| u32::try_from(number).unwrap_or(u32::MAX);
        PlannedPayment {
            order: PaymentOrder {
                account: "storm".to_owned(),
                amount: Cents(dice.u64(500..10_000)),
                reference: format!("storm-{storm}-{:03}", number + 1),
            },
            begins_after: SPAN * share(number) / share(orders),
            manner: Manner::Crowds,
            answers: vec![answering],
            seed: dice.u64(..),
        }
    };
    (0..orders).map(payment).collect()
}

impl StormSlot {
    pub(super) fn is_under_way(&self) -> bool {
        self.lock().as_ref().is_some_and(|storm| storm.is_under_way())
    }

    /// How far it is, or what came of it.
    pub(super) fn look(&self, direct: &Venue, behind: &Venue) -> Option<StormView> {
        let storm = Arc::clone(self.lock().as_ref()?);
        let ended = *storm.ended();
        let [without, with] = ended.map_or([0, 0], |end| end.given_up);
        Some(StormView {
            request: storm.request,
            clients: storm.clients(),
            done: *storm.done.borrow(),
            under_way: ended.is_none(),
            killed: ended.is_some_and(|end| end.killed),
            seconds: ended.map_or_else(|| storm.began.elapsed(), |end| end.took).as_secs_f32(),
            without: storm.side(direct, without),
            with: storm.side(behind, with),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<StormRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StormRun {
    fn clients(&self) -> usize {
        self.request.orders * self.request.copies
    }

    fn is_under_way(&self) -> bool {
        self.ended().is_none()
    }

    fn ended(&self) -> MutexGuard<'_, Option<StormEnd>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn side(&self, venue: &Venue, given_up: usize) -> StormSide {
        let counts = venue.ledger.counts();
        let charged = self.references.iter().map(|one| counts.get(one).copied().unwrap_or(0));
        let charged: Vec<_> = charged.collect();
        StormSide {
            requests: venue.traffic.requests(&self.references),
            charges: charged.iter().sum(),
            doubled: charged.iter().filter(|times| **times > 1).count(),
            missing: charged.iter().filter(|times| **times == 0).count(),
            given_up,
        }
    }
}
