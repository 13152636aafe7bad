//! Rows are appended, changed and removed.

use hapax_core::{
    StateTag,
    codec::{Row, Sealed},
};

use hapax_sql::Value;

use super::{
    find::in_tail,
    merge::{forget_dead, index_rows},
    runs::numbers,
    session::LogSession,
};
use crate::{
    key::KeyColumn,
    ranges,
    row::{CLAIM, DROP_OPEN, END, NEWEST, OPEN},
};

const REWRITE: &str = "UPDATE hapax_claims SET format = ?2, fingerprint = ?3, fence = ?4, \
     owner = ?5, recovery = ?6, created_at = ?7, changed_after = ?8, kept_for = ?9, \
     tombstone = ?10, request = ?11 WHERE row = ?1";
const DROP_END: &str = "DELETE FROM hapax_ends WHERE row = ?1";
const DROP_CLAIM: &str = "DELETE FROM hapax_claims WHERE row = ?1 RETURNING 1";
/// The number of the newest row outlives it.
const KEEP_NEWEST: &str = "INSERT INTO hapax_meta (name, value) SELECT 'newest_row', ?1 \
     WHERE ?1 = (SELECT max(row) FROM hapax_claims) \
     ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";

/// The number of the newest row there ever was.
pub(crate) async fn newest_row<S: LogSession>(session: &mut S) -> Result<i64, S::Error> {
    let rows = session.ask(NEWEST, &[]).await?;
    let newest = numbers(&rows).map_err(S::refuse)?;
    Ok(newest.first().copied().unwrap_or(0))
}

/// Writes a row in place of the one with this number, or, where there is none, beside all others. Says
/// whether it could: somebody may have changed what the caller found.
pub(crate) async fn replace<S: LogSession>(
    session: &mut S,
    number: Option<i64>,
    row: &Row,
) -> Result<bool, S::Error> {
    let is_as_found = match number {
        Some(number) => remove(session, number).await?,
        None => in_tail(session, row.id).await?.is_empty(),
    };
    if is_as_found {
        append(session, row).await?;
    }
    Ok(is_as_found)
}

/// Appends a row, and looks after the index.
async fn append<S: LogSession>(session: &mut S, row: &Row) -> Result<(), S::Error> {
    let newest = newest_row(session).await?;
    let number = crate::row::number_after(newest);
    append_at(session, number, row).await?;
    index_rows(session, (newest, number)).await.map(|_| ())
}

/// Appends a row under this number, which is nobody's.
pub(crate) async fn append_at<S: LogSession>(
    session: &mut S,
    number: i64,
    row: &Row,
) -> Result<(), S::Error> {
    let key = KeyColumn::of(&row.key);
    let mut values = vec![number.into(), row.id.as_bytes().into(), i64::from(row.format).into()];
    values.extend([Value::from(&*row.tenant), (&*row.scope).into()]);
    values.push(match &key {
        KeyColumn::Text(text) => (*text).into(),
        KeyColumn::Uuid(uuid) => uuid.into(),
    });
    values.extend(changing(row));
    session.ask(CLAIM, &values).await?;
    write_state(session, number, row).await?;
    lower_due(session, number, row.expires_at).await
}

/// Writes over the row with this number; which operation it belongs to stays.
pub(crate) async fn rewrite<S: LogSession>(
    session: &mut S,
    number: i64,
    row: &Row,
) -> Result<(), S::Error> {
    let mut values = vec![number.into(), i64::from(row.format).into()];
    values.extend(changing(row));
    session.ask(REWRITE, &values).await?;
    session.ask(DROP_END, &values[..1]).await?;
    session.ask(DROP_OPEN, &values[..1]).await?;
    write_state(session, number, row).await?;
    lower_due(session, number, row.expires_at).await
}

/// Removes the row with this number; says whether it was there.
pub(crate) async fn remove<S: LogSession>(session: &mut S, number: i64) -> Result<bool, S::Error> {
    let was_there = remove_due(session, number).await?;
    forget_dead(session, (number, number), 1).await?;
    Ok(was_there)
}

/// The same, for one of many rows whose index is looked after together.
pub(crate) async fn remove_due<S: LogSession>(
    session: &mut S,
    number: i64,
) -> Result<bool, S::Error> {
    let row = [number.into()];
    session.ask(KEEP_NEWEST, &row).await?;
    session.ask(DROP_END, &row).await?;
    session.ask(DROP_OPEN, &row).await?;
    Ok(!session.ask(DROP_CLAIM, &row).await?.is_empty())
}

/// A purge has to look at the row no later than this.
async fn lower_due<S: LogSession>(session: &mut S, number: i64, due: i64) -> Result<(), S::Error> {
    session.ask(ranges::LOWER, &[ranges::of(number).into(), due.into()]).await.map(|_| ())
}

async fn write_state<S: LogSession>(
    session: &mut S,
    number: i64,
    row: &Row,
) -> Result<(), S::Error> {
    let state = i64::from(row.state);
    let has_ended = StateTag::ALL.iter().any(|tag| *tag as i16 == row.state && tag.is_terminal());
    if !has_ended {
        let (doubt, until) = (i64::from(row.doubt), row.until);
        let values = [number, state, doubt, until].map(Into::into);
        return session.ask(OPEN, &values).await.map(|_| ());
    }
    let changed = row.changed_at.wrapping_sub(row.created_at);
    let mut values = vec![number.into(), state.into(), changed.into(), Value::Number(None)];
    values.extend(outcome(row));
    session.ask(END, &values).await.map(|_| ())
}

/// What both a new row and a changed one are written with.
fn changing(row: &Row) -> [Value<'_>; 9] {
    [
        (&*row.fingerprint).into(),
        row.fence.into(),
        row.owner.into(),
        i64::from(row.recovery).into(),
        row.created_at.into(),
        row.changed_at.wrapping_sub(row.created_at).into(),
        row.expires_at.wrapping_sub(row.created_at).into(),
        row.tombstone.into(),
        row.request.as_deref().into(),
    ]
}

/// Head, body and digest.
fn outcome(row: &Row) -> [Value<'_>; 3] {
    match &row.outcome {
        Some(Sealed { head, body, digest }) => [(&**head).into(), (&**body).into(), digest.into()],
        None => [Value::Bytes(None); 3],
    }
}
