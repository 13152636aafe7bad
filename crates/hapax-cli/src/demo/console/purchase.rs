//! An order that somebody on the page places, sends again, or changes under the same key.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{Context, refusal::ActionRefusal, supervisor::KilledBy};
use crate::demo::{
    client::send,
    order::{Cents, PaymentOrder},
    plan::{ApiReply, Manner, PlannedPayment},
};

/// Most orders of the page that wait for their answer at one time.
pub(super) const PURCHASES_AT_ONCE_MAX: usize = 16;
/// How long the page waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the shop takes to answer an order that is to be interrupted.
const HELD_FOR: Duration = Duration::from_millis(1_200);
/// Until when such an order must have been charged.
const CHARGED_WITHIN: Duration = Duration::from_secs(2);

/// What somebody wants to buy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Purchase {
    amount: Cents,
    /// The key of an order to send again; a new one without it.
    #[serde(default)]
    key: Option<String>,
    /// Whether the gateway is killed when the charge is made and nobody knows it yet.
    #[serde(default)]
    kill: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct PurchaseReport {
    key: String,
    amount: Cents,
    status: Option<u16>,
    replayed: bool,
    told: String,
    body: String,
}

/// Sends the order through the gateway, as any client does.
pub(super) async fn make(
    context: &Arc<Context>,
    purchase: Purchase,
) -> Result<PurchaseReport, ActionRefusal> {
    let Purchase { amount, key, kill } = purchase;
    if kill && key.is_some() {
        return Err(ActionRefusal::Invalid("only a new order can be interrupted".to_owned()));
    }
    if kill && context.storm.is_under_way() {
        return Err(ActionRefusal::StormUnderWay);
    }
    if kill && !context.supervisor.is_up() {
        return Err(ActionRefusal::GatewayDown);
    }
    context.has_room_for(1)?;
    let _turn = context.purchases.try_acquire().map_err(|_| ActionRefusal::Busy)?;
    let order = order(key.unwrap_or_else(new_key), amount)?;
    let shop = context.behind.storefront(context.supervisor.address);
    let (killed, answer) = if kill {
        tokio::join!(hold_and_kill(context, &order), send(&shop, &order, PATIENCE))
    } else {
        (false, send(&shop, &order, PATIENCE).await)
    };
    let told = match &answer {
        Some(answer) => answer.told(),
        None if killed => "no answer: the gateway died after the charge was made".to_owned(),
        None => "no answer: the gateway is down, or its answer was lost".to_owned(),
    };
    let (status, replayed, body) = match answer {
        Some(answer) => (Some(answer.status.as_u16()), answer.replayed, answer.body),
        None => (None, false, String::new()),
    };
    Ok(PurchaseReport { key: order.reference, amount, status, replayed, told, body })
}

/// An order that a shop would take, under a key that HTTP can carry.
fn order(reference: String, amount: Cents) -> Result<PaymentOrder, ActionRefusal> {
    let order = PaymentOrder { account: "you".to_owned(), amount, reference };
    let written = serde_json::to_vec(&order).unwrap_or_default();
    let is_plain = order.reference.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_plain {
        return Err(ActionRefusal::Invalid("a key is letters, digits and dashes".to_owned()));
    }
    PaymentOrder::parse(&written).map_err(ActionRefusal::Invalid)
}

/// Kills the gateway at the worst moment: the money is taken, and no record says so. False if it did
/// not come to that.
async fn hold_and_kill(context: &Arc<Context>, order: &PaymentOrder) -> bool {
    let api = &context.behind.api;
    api.plan_answers([&PlannedPayment {
        order: order.clone(),
        begins_after: Duration::ZERO,
        manner: Manner::Retries,
        answers: vec![ApiReply::Late(HELD_FOR)],
        seed: 0,
    }]);
    let mut withheld = api.withheld();
    let charging = withheld.wait_for(|withheld| *withheld > 0);
    let is_charged = matches!(timeout(CHARGED_WITHIN, charging).await, Ok(Ok(_)));
    // An order that did not get so far leaves nothing to interrupt; its answer says why.
    is_charged && context.supervisor.kill(KilledBy::You).is_ok()
}

fn new_key() -> String {
    let letters = std::iter::repeat_with(fastrand::alphanumeric).take(8);
    let letters: String = letters.collect();
    format!("page-{}", letters.to_ascii_lowercase())
}
