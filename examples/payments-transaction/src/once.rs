//! The same without HTTP: a payment that came some other way, such as in a file or a message.

use std::error::Error;

use hapax::{
    Answered, AttemptAnswer, Body, Event, Key, Operation, Outcome, RequestParts, Scope, Tenant,
    Transactional, postgres::transaction::deadpool::Database,
};

/// Pays this order once, however often it is asked to.
///
/// # Errors
///
/// If the order was not paid, or paid with another sum before.
pub async fn pay(
    hapax: &Transactional<Database>,
    order: &'static str,
    cents: i64,
) -> Result<Answered, Box<dyn Error + Send + Sync>> {
    let (tenant, scope) = (Tenant::parse("shop")?, Scope::parse("payments")?);
    let operation = Operation::new(tenant, scope, Key::parse(order)?);
    let request = RequestParts { body: &cents.to_be_bytes(), ..RequestParts::default() };
    let answered = hapax.once(operation, &request, move |mut tx| async move {
        let insert = "INSERT INTO payments (order_id, account, cents) VALUES ($1, 'ada', $2)";
        tx.execute(insert, &[&order, &cents]).await?;
        tx.emit(Event::new("payment.completed", order, cents.to_string())?);
        let outcome = Outcome::new(201, Vec::new(), Body::Kept("paid".into()))?;
        Ok::<_, Box<dyn Error + Send + Sync>>(AttemptAnswer::completed(outcome))
    });
    Ok(answered.await?)
}
