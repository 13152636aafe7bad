//! What a payment is.

use std::time::Duration;

use hapax::{
    AttemptAnswer, Body, Header, Outcome, Run, WorkflowError,
    retry::{Backoff, Jitter, Schedule},
};
use serde_json::{Value, json};

use crate::{
    books::Books,
    mail::{Letter, Mail},
    order::Order,
    provider::{Charged, Provider},
};

/// Everything a payment has an effect on.
#[derive(Debug)]
pub(crate) struct Payments {
    pub(crate) provider: Provider,
    pub(crate) books: Books,
    pub(crate) mail: Mail,
}

impl Payments {
    /// Charges, records and mails. Called again from its beginning after a crash, by whoever goes on:
    /// finished steps then answer from what is kept.
    pub(crate) async fn pay(&self, run: &Run) -> Result<AttemptAnswer, WorkflowError> {
        let order: Order = serde_json::from_slice(run.request()).map_err(WorkflowError::later)?;
        let (order, tenant) = (&order, run.operation().tenant());

        // The provider charges once per key, and can be asked whether it did.
        let charged = run
            .step("charge", |key| self.provider.charge(key, order))
            .probe(|key| self.provider.find(key))
            .retry(patience())
            .await?;
        let charge = match &charged {
            Charged::Taken { charge } => charge,
            Charged::Declined => {
                let declined = outcome(402, &json!({ "error": "declined" }))?;
                return Ok(AttemptAnswer::failed(declined));
            }
        };

        // Our own database takes the payment, its event and the key in one transaction.
        let payment = run
            .step("record", |key| self.books.record(tenant, key, order, charge))
            .retry(patience())
            .await?;

        // A mail has a natural key, so the derived one is not needed.
        let letter = Letter { payment, kind: "receipt", to: order.email.as_str() };
        run.step("receipt", |_| self.mail.send_once(letter)).retry(patience()).await?;

        let Order { order, cents, .. } = order;
        let paid = json!({ "payment": payment, "charge": charge, "order": order, "cents": cents });
        Ok(AttemptAnswer::completed(outcome(201, &paid)?))
    }
}

/// How often a step is tried before the payment waits for its next attempt.
fn patience() -> Schedule {
    let (base, cap) = (Duration::from_millis(50), Duration::from_secs(1));
    Schedule::new(Backoff { jitter: Jitter::Full, base, cap }, 5).unwrap_or_default()
}

fn outcome(status: u16, body: &Value) -> Result<Outcome, WorkflowError> {
    let json = Header { name: "content-type".to_owned(), value: "application/json".into() };
    let body = Body::Kept(body.to_string().into());
    Outcome::new(status, vec![json], body).map_err(WorkflowError::later)
}
