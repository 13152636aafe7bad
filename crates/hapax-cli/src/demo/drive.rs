//! Lets all customers of a plan pay at one place, and kills the gateway meanwhile.

use std::{convert::Infallible, future::pending, sync::Arc};

use tokio::{
    sync::watch,
    task::{JoinSet, block_in_place},
    time::Instant,
};

use super::{
    customer::{CustomerView, pay},
    error::DemoError,
    gateway::DemoGateway,
    plan::DayPlan,
    progress::{DemoProgress, PaymentBar},
    traffic::Storefront,
};

/// When the gateway is killed, in percent of the payments that are made.
const KILLED_AT_PERCENT: [usize; 4] = [10, 30, 50, 75];

/// Runs every payment of the plan against this place.
pub(super) async fn drive(
    plan: &Arc<DayPlan>,
    shop: &Storefront,
    done: &watch::Sender<usize>,
    bar: &PaymentBar,
) -> Result<CustomerView, DemoError> {
    let mut customers = JoinSet::new();
    for number in 0..plan.payments.len() {
        let (plan, shop) = (Arc::clone(plan), shop.clone());
        customers.spawn(async move { pay(&shop, &plan.payments[number]).await });
    }
    let mut seen = CustomerView::default();
    while let Some(one) = customers.join_next().await {
        seen += one.map_err(DemoError::Customer)?;
        done.send_modify(|done| *done += 1);
        bar.one_more();
    }
    bar.finish();
    Ok(seen)
}

/// What a killer has to know.
pub(super) struct Killer<'a> {
    pub(super) gateway: &'a mut DemoGateway,
    pub(super) payments: usize,
    /// How many payments are made.
    pub(super) done: watch::Receiver<usize>,
    /// How many charges are made and not yet answered.
    pub(super) withheld: watch::Receiver<usize>,
    pub(super) kills: &'a mut u64,
    pub(super) progress: &'a DemoProgress,
}

impl Killer<'_> {
    /// Kills the gateway again and again, at the worst moment: the money is taken, and no record
    /// says so. Ends only if the gateway does not come back.
    pub(super) async fn kill(mut self) -> Result<Infallible, DemoError> {
        for percent in KILLED_AT_PERCENT {
            let enough = self.payments * percent / 100;
            if self.done.wait_for(|done| *done >= enough).await.is_err() {
                break;
            }
            let waiting = match self.withheld.wait_for(|withheld| *withheld > 0).await {
                Ok(withheld) => *withheld,
                Err(_) => break,
            };
            let began = Instant::now();
            block_in_place(|| self.gateway.kill_and_restart())?;
            *self.kills += 1;
            self.progress.tell(&format!(
                "  gateway killed (SIGKILL) with {waiting} {} made but not yet answered; back after {} ms",
                if waiting == 1 { "charge" } else { "charges" },
                began.elapsed().as_millis(),
            ));
        }
        pending().await
    }
}
