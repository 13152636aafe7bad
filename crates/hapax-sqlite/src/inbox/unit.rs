//! The conversation inside a transaction that acts on a message. The write lock is held throughout.

use hapax_core::{
    Fence, StoreError, Timestamp, TransactionError,
    inbox::{
        Digest, Identity, Judgement, LetterReason, Message, MessageAnswer, MessageArrival,
        MessageEnd, MessageState, Proof, StoredMessage, encode_headers, judge,
    },
};

use super::{
    cell::{Cell, Cells},
    sql_session::SqlSession,
};
use crate::clock_mark;

const RECORD: &str = "INSERT INTO hapax_inbox (consumer, message_id, content, state, received_at) \
     VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO NOTHING RETURNING 1";
const LOOK: &str = "SELECT content, state, reason, received_at FROM hapax_inbox \
     WHERE consumer = ?1 AND message_id = ?2";
const RENEW: &str = "UPDATE hapax_inbox SET content = ?3, state = 1, reason = NULL, received_at = ?4 \
     WHERE consumer = ?1 AND message_id = ?2 RETURNING 1";
const PLACE: &str = "UPDATE hapax_inbox_offsets SET next = ?5 + 1 \
     WHERE consumer = ?1 AND source = ?2 AND partition = ?3 AND fence = ?4 \
       AND (next IS NULL OR next <= ?5) RETURNING 1";
const FENCE: &str = "SELECT fence FROM hapax_inbox_offsets \
     WHERE consumer = ?1 AND source = ?2 AND partition = ?3";
const READ_KEY: &str = "SELECT \
     (SELECT version FROM hapax_inbox_versions WHERE consumer = ?1 AND key = ?2), \
     (SELECT count(*) FROM hapax_inbox_held WHERE consumer = ?1 AND key = ?2)";
const LET_GO: &str = "DELETE FROM hapax_inbox_held \
     WHERE consumer = ?1 AND key = ?2 AND version = ?3 AND message_id = ?4 RETURNING 1";
const MOVE_ON: &str = "INSERT INTO hapax_inbox_versions (consumer, key, version) VALUES (?1, ?2, ?3) \
     ON CONFLICT DO UPDATE SET version = max(version, excluded.version) RETURNING 1";
const MARK: &str = "UPDATE hapax_inbox SET state = ?3 WHERE consumer = ?1 AND message_id = ?2 \
     RETURNING 1";
const HOLD: &str = "INSERT INTO hapax_inbox_held \
     (consumer, key, version, message_id, business_id, source, headers, payload, held_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING RETURNING 1";
const FAIL: &str = "INSERT INTO hapax_inbox (consumer, message_id, content, state, received_at, reason) \
     VALUES (?1, ?2, ?3, 2, ?4, ?5) \
     ON CONFLICT DO UPDATE SET state = 2, reason = excluded.reason RETURNING 1";
pub(crate) const BURY: &str = "INSERT INTO hapax_inbox_dead \
     (consumer, message_id, content, reason, detail, source, key, headers, payload, dead_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING RETURNING 1";

/// What a key has come to, and how many of its messages are held.
pub(crate) type KeyFound = (Option<i64>, u32);

/// Finds out whether the message is the first, in an open transaction.
pub(crate) async fn enter(
    desk: &mut impl SqlSession,
    now: Timestamp,
    arrival: &MessageArrival,
) -> Result<Result<KeyFound, MessageAnswer>, TransactionError> {
    let answer = match arrival.proof {
        Proof::Record => record(desk, now, arrival).await?,
        Proof::Place(fence) => place(desk, arrival, fence).await?,
        Proof::Held => let_go(desk, arrival).await?,
    };
    if let Some(answer) = answer {
        return Ok(Err(answer));
    }
    if !arrival.in_turn {
        return Ok(Ok((None, 0)));
    }
    let rows = desk.ask(READ_KEY, &key_values(arrival)?).await?;
    let row = one(&rows)?;
    let held = u32::try_from(row.number(1)?).unwrap_or(u32::MAX);
    Ok(Ok((row.maybe_number(0)?, held)))
}

/// Writes how it ended; the commit is left to do.
pub(crate) async fn leave(
    desk: &mut impl SqlSession,
    now: Timestamp,
    arrival: &MessageArrival,
    end: &MessageEnd,
) -> Result<(), TransactionError> {
    let mut notes: Vec<(&'static str, Vec<Cell>)> = Vec::new();
    if arrival.in_turn && end.moves_on() {
        notes.push((MOVE_ON, versioned(arrival)?));
    }
    let has_record = !matches!(arrival.proof, Proof::Place(_));
    match end {
        MessageEnd::Done if arrival.proof == Proof::Held => {
            notes.push(mark(arrival, &MessageState::Done))
        }
        MessageEnd::Done => {}
        MessageEnd::Passed if has_record => notes.push(mark(arrival, &MessageState::Passed)),
        MessageEnd::Passed => {}
        MessageEnd::Held => {
            notes.push((HOLD, held(now, arrival)?));
            if has_record {
                notes.push(mark(arrival, &MessageState::Held));
            }
        }
        MessageEnd::Failed(reason) => notes.push(fail(now, arrival, reason)),
        MessageEnd::Dead(reason) => {
            let letter = letter(now, arrival.consumer.number, &arrival.message, reason);
            notes.push((BURY, letter));
            notes.push(fail(now, arrival, &reason.to_string()));
        }
    }
    for (text, values) in notes {
        desk.ask(text, &values).await?;
    }
    Ok(())
}

/// What [`BURY`] takes.
pub(crate) fn letter(
    now: Timestamp,
    consumer: i32,
    message: &Message,
    reason: &LetterReason,
) -> Vec<Cell> {
    vec![
        consumer.into(),
        message.id.as_str().into(),
        message.digest().as_bytes()[..].into(),
        reason.code().into(),
        reason.detail().into(),
        (&*message.source).into(),
        message.key.as_deref().into(),
        (&*encode_headers(&message.headers)).into(),
        (&*message.payload).into(),
        now.as_micros().into(),
    ]
}

/// Writes the record, or says why there is one.
async fn record(
    desk: &mut impl SqlSession,
    now: Timestamp,
    arrival: &MessageArrival,
) -> Result<Option<MessageAnswer>, TransactionError> {
    let values = record_values(now, arrival);
    if !desk.ask(RECORD, &values).await?.is_empty() {
        return Ok(None);
    }
    let rows = desk.ask(LOOK, &values[..2]).await?;
    let found = found(one(&rows)?)?;
    let judge_at = |at| judge(at, &found, arrival.message.digest(), arrival.consumer.retention);
    let mut judgement = judge_at(now);
    if judgement == Judgement::Spent {
        judgement = judge_at(clock_mark::ask(desk, now).await?.trusted());
    }
    match judgement {
        Judgement::Answer(answer) => Ok(Some(answer)),
        Judgement::Spent => {
            desk.ask(RENEW, &values).await?;
            Ok(None)
        }
    }
}

fn found(row: &Cells) -> Result<StoredMessage, StoreError> {
    let damaged =
        |what: &str| StoreError::damaged(format!("{what} of a message's record is unknown"));
    let digest = row.bytes(0)?.try_into().map_err(|_| damaged("the digest"))?;
    let state = i16::try_from(row.number(1)?).unwrap_or_default();
    let state =
        MessageState::from_number(state, row.maybe_text(2)?).ok_or_else(|| damaged("the state"))?;
    let received_at = Timestamp::from_micros(row.number(3)?);
    Ok(StoredMessage { digest: Digest::from_bytes(digest), state, received_at })
}

/// Whether the partition has come to this message, and no further.
async fn place(
    desk: &mut impl SqlSession,
    arrival: &MessageArrival,
    fence: Fence,
) -> Result<Option<MessageAnswer>, TransactionError> {
    let Some(place) = &arrival.message.place else { return Err(misused("without a place")) };
    let values = [
        arrival.consumer.number.into(),
        (&*place.partition.source).into(),
        place.partition.number.into(),
        fence.get().into(),
        place.offset.into(),
    ];
    if !desk.ask(PLACE, &values).await?.is_empty() {
        return Ok(None);
    }
    let rows = desk.ask(FENCE, &values[..3]).await?;
    let found = rows.first().map(|row| row.number(0)).transpose()?;
    Ok(Some(if found == Some(fence.get()) {
        MessageAnswer::Duplicate
    } else {
        MessageAnswer::Fenced
    }))
}

/// Whether the message is still held.
async fn let_go(
    desk: &mut impl SqlSession,
    arrival: &MessageArrival,
) -> Result<Option<MessageAnswer>, TransactionError> {
    let mut values = versioned(arrival)?;
    values.push(arrival.message.id.as_str().into());
    let gone = desk.ask(LET_GO, &values).await?;
    Ok(gone.is_empty().then_some(MessageAnswer::Duplicate))
}

fn record_values(
    now: Timestamp,
    MessageArrival { consumer, message, .. }: &MessageArrival,
) -> Vec<Cell> {
    vec![
        consumer.number.into(),
        message.id.as_str().into(),
        message.digest().as_bytes()[..].into(),
        now.as_micros().into(),
    ]
}

fn key_values(arrival: &MessageArrival) -> Result<Vec<Cell>, TransactionError> {
    let Some(key) = &arrival.message.key else { return Err(misused("in turn, without a key")) };
    Ok(vec![arrival.consumer.number.into(), (&**key).into()])
}

fn versioned(arrival: &MessageArrival) -> Result<Vec<Cell>, TransactionError> {
    let Some(version) = arrival.message.version else {
        return Err(misused("in turn, without a version"));
    };
    let mut values = key_values(arrival)?;
    values.push(version.into());
    Ok(values)
}

fn held(now: Timestamp, arrival: &MessageArrival) -> Result<Vec<Cell>, TransactionError> {
    let message = &arrival.message;
    let mut values = versioned(arrival)?;
    values.extend([
        message.id.as_str().into(),
        i64::from(message.identity == Identity::Business).into(),
        (&*message.source).into(),
        (&*encode_headers(&message.headers)).into(),
        (&*message.payload).into(),
        now.as_micros().into(),
    ]);
    Ok(values)
}

fn mark(
    MessageArrival { consumer, message, .. }: &MessageArrival,
    state: &MessageState,
) -> (&'static str, Vec<Cell>) {
    let state = i64::from(state.number());
    (MARK, vec![consumer.number.into(), message.id.as_str().into(), state.into()])
}

fn fail(now: Timestamp, arrival: &MessageArrival, reason: &str) -> (&'static str, Vec<Cell>) {
    let mut values = record_values(now, arrival);
    values.push(reason.into());
    (FAIL, values)
}

pub(crate) fn one(rows: &[Cells]) -> Result<&Cells, StoreError> {
    rows.first().ok_or_else(|| StoreError::damaged("a row that must be there is not"))
}

fn misused(words: &'static str) -> TransactionError {
    StoreError::unavailable(format!("a message at the door {words}")).into()
}
