//! What must be true of every workflow afterwards.

use hapax_core::{Body, DynStore, Operation, Outcome, Record, StateTag, StoredStep};

use super::ledger::LedgerBooks;
use crate::error::CrashError;

/// What is wrong with this operation, if anything.
pub(super) async fn audit(
    store: &DynStore,
    books: &LedgerBooks,
    operation: &Operation,
) -> Result<Option<String>, CrashError> {
    let id = operation.id();
    let payment = operation.key().as_str();
    let counts = [
        ("charges", count(&books.charges, payment)),
        ("mails", count(&books.mails, payment)),
        ("events", count(&books.events, payment)),
    ];
    if let Some((what, count)) = counts.into_iter().find(|(_, count)| *count != 1) {
        return Ok(Some(format!("{payment} has {count} {what}")));
    }
    let loaded = store.load(vec![id]).await.pop().transpose()?;
    let record = loaded.and_then(|loaded| loaded.record);
    let Some(record) = record.filter(|record| record.tag() == StateTag::Completed) else {
        return Ok(Some(format!("{payment} is not completed")));
    };
    let steps = store.steps(id).await?;
    Ok(differs(&record, &steps).then(|| format!("{payment} answered {record:?} after {steps:?}")))
}

fn count(book: &[String], what: &str) -> usize {
    book.iter().filter(|entry| *entry == what).count()
}

/// Whether the answer was made of other results than those that are kept.
fn differs(record: &Record, steps: &[StoredStep]) -> bool {
    let names: Vec<_> = steps.iter().map(|stored| stored.step.name().as_str()).collect();
    let text = |at: usize| {
        let json = steps.get(at).map(|stored| stored.step.result().to_vec()).unwrap_or_default();
        String::from_utf8(json).unwrap_or_default().trim_matches('"').to_owned()
    };
    let expected = format!("{} {}", text(0), text(1));
    let said = match record.outcome().map(Outcome::body) {
        Some(Body::Kept(body)) => &body[..],
        Some(_) | None => &[],
    };
    names != ["charge", "record", "publish", "mail"] || said != expected.as_bytes()
}
