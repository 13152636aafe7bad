//! The conversation inside a transaction that acts on a message.

use hapax_core::{
    Fence, StoreError, Timestamp, TransactionError,
    inbox::{
        Digest, Identity, Judgement, LetterReason, Message, MessageAnswer, MessageArrival,
        MessageEnd, MessageState, Proof, StoredMessage, encode_headers, judge,
    },
    limits::CLAIM_ROUNDS_MAX,
};

use super::{
    cell::{Cell, Cells},
    sql_session::SqlSession,
};
use crate::transaction::{error::TransactionFault, unit::LockName};

const RECORD: &str = include_str!("../sql/inbox_record.sql");
const LOOK: &str = include_str!("../sql/inbox_look.sql");
const RENEW: &str = include_str!("../sql/inbox_renew.sql");
const PLACE: &str = include_str!("../sql/inbox_place.sql");
const FENCE: &str = include_str!("../sql/inbox_fence.sql");
const LOCK_KEY: &str = include_str!("../sql/inbox_lock_key.sql");
const READ_KEY: &str = include_str!("../sql/inbox_read_key.sql");
const LET_GO: &str = include_str!("../sql/inbox_let_go.sql");
const MOVE_ON: &str = include_str!("../sql/inbox_move_on.sql");
const MARK: &str = include_str!("../sql/inbox_mark.sql");
const HOLD: &str = include_str!("../sql/inbox_hold.sql");
const FAIL: &str = include_str!("../sql/inbox_fail.sql");
pub(crate) const BURY: &str = include_str!("../sql/inbox_bury.sql");

/// What a message's transaction knows of it.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) arrival: MessageArrival,
    /// What its key has come to.
    pub(crate) last: Option<i64>,
    /// How many of its key are held.
    pub(crate) held: u32,
}

impl Carried {
    /// The lock of its record, which only this transaction has.
    pub(crate) fn lock(&self) -> Option<LockName> {
        let MessageArrival { consumer, message, proof, .. } = &self.arrival;
        let name = || format!("{}\n{}", consumer.number, message.id.as_str());
        (*proof == Proof::Record).then(|| LockName { kind: "message", name: name() })
    }
}

/// The statement that goes out with `BEGIN`.
pub(crate) fn opening(
    arrival: &MessageArrival,
) -> Result<(&'static str, Vec<Cell>), TransactionError> {
    let MessageArrival { consumer, message, proof, .. } = arrival;
    Ok(match proof {
        Proof::Record => (RECORD, record_values(arrival)),
        Proof::Place(fence) => {
            let Some(place) = &message.place else { return Err(misused("without a place")) };
            let values = vec![
                consumer.number.into(),
                (&*place.partition.source).into(),
                i64::from(place.partition.number).into(),
                fence.get().into(),
                place.offset.into(),
            ];
            (PLACE, values)
        }
        Proof::Held => (LOCK_KEY, key_values(arrival)?),
    })
}

/// Goes on from what the opening statement answered.
pub(crate) async fn enter(
    session: &mut impl SqlSession,
    arrival: &MessageArrival,
    opened: Vec<Cells>,
) -> Result<Result<Carried, MessageAnswer>, TransactionError> {
    let entered = match arrival.proof {
        Proof::Record => record(session, arrival, opened).await?,
        Proof::Place(fence) => place(session, arrival, fence, opened).await?,
        Proof::Held => let_go(session, arrival, &opened).await?,
    };
    if let Err(answer) = entered {
        return Ok(Err(answer));
    }
    let mut carried = Carried { arrival: arrival.clone(), last: None, held: 0 };
    if arrival.in_turn {
        let key = key_values(arrival)?;
        if arrival.proof != Proof::Held
            && !is_yes(&session.ask(LOCK_KEY, &key).await.map_err(TransactionFault::before_commit)?)
        {
            return Ok(Err(MessageAnswer::Busy));
        }
        let rows = session.ask(READ_KEY, &key).await.map_err(TransactionFault::before_commit)?;
        let row = one(&rows).map_err(TransactionFault::before_commit)?;
        carried.last = row.maybe_number(0).map_err(TransactionFault::before_commit)?;
        let held = row.number(1).map_err(TransactionFault::before_commit)?;
        carried.held = u32::try_from(held).unwrap_or(u32::MAX);
    }
    Ok(Ok(carried))
}

/// Writes how it ended; the commit is left to do.
pub(crate) async fn leave(
    session: &mut impl SqlSession,
    carried: &Carried,
    end: &MessageEnd,
) -> Result<(), TransactionError> {
    let Carried { arrival, .. } = carried;
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
            notes.push((HOLD, held(arrival)?));
            if has_record {
                notes.push(mark(arrival, &MessageState::Held));
            }
        }
        MessageEnd::Failed(reason) => notes.push(fail(arrival, reason)),
        MessageEnd::Dead(reason) => {
            notes.push((BURY, letter(arrival.consumer.number, &arrival.message, reason)));
            notes.push(fail(arrival, &reason.to_string()));
        }
    }
    for (text, values) in notes {
        session.ask(text, &values).await.map_err(TransactionFault::before_commit)?;
    }
    Ok(())
}

/// What [`BURY`] takes.
pub(crate) fn letter(consumer: i32, message: &Message, reason: &LetterReason) -> Vec<Cell> {
    vec![
        consumer.into(),
        message.id.as_str().into(),
        message.digest().as_bytes()[..].into(),
        reason.code().into(),
        reason.detail().into(),
        (&*message.source).into(),
        Cell::Text(message.key.clone()),
        (&*encode_headers(&message.headers)).into(),
        (&*message.payload).into(),
    ]
}

/// Writes the record under its lock, or says why there is none to be had.
async fn record(
    session: &mut impl SqlSession,
    arrival: &MessageArrival,
    mut opened: Vec<Cells>,
) -> Result<Result<(), MessageAnswer>, TransactionError> {
    let fault = TransactionFault::before_commit;
    let values = record_values(arrival);
    for round in 0..CLAIM_ROUNDS_MAX {
        if round > 0 {
            opened = session.ask(RECORD, &values).await.map_err(fault)?;
        }
        if !opened.is_empty() {
            return Ok(Ok(()));
        }
        let rows = session.ask(LOOK, &values[..2]).await.map_err(fault)?;
        let row = one(&rows).map_err(fault)?;
        let has_lock = row.number(0).map_err(fault)? == 1;
        let Some((now, found)) = found(row)? else {
            // Nothing is stored yet: somebody is at it, or was until a moment ago.
            if has_lock {
                continue;
            }
            return Ok(Err(MessageAnswer::Busy));
        };
        match judge(now, &found, arrival.message.digest(), arrival.consumer.retention) {
            Judgement::Answer(answer) => return Ok(Err(answer)),
            Judgement::Spent if !has_lock => return Ok(Err(MessageAnswer::Busy)),
            Judgement::Spent => {
                let mut values = values.clone();
                values.push(found.received_at.as_micros().into());
                if !session.ask(RENEW, &values).await.map_err(fault)?.is_empty() {
                    return Ok(Ok(()));
                }
            }
        }
    }
    Err(TransactionError::conflict("other writers kept changing the record"))
}

fn found(row: &Cells) -> Result<Option<(Timestamp, StoredMessage)>, TransactionError> {
    let fault = TransactionFault::before_commit;
    let Some(digest) = row.maybe_bytes(1).map_err(fault)? else { return Ok(None) };
    let damaged =
        |what: &str| StoreError::damaged(format!("{what} of a message's record is unknown"));
    let digest = digest.try_into().map_err(|_| damaged("the digest"))?;
    let state = i16::try_from(row.number(2).map_err(fault)?).unwrap_or_default();
    let state = MessageState::from_number(state, row.maybe_text(3).map_err(fault)?);
    let received_at = Timestamp::from_micros(row.number(4).map_err(fault)?);
    let now = Timestamp::from_micros(row.number(5).map_err(fault)?);
    let state = state.ok_or_else(|| damaged("the state"))?;
    Ok(Some((now, StoredMessage { digest: Digest::from_bytes(digest), state, received_at })))
}

/// Whether the partition has come to this message, and no further.
async fn place(
    session: &mut impl SqlSession,
    arrival: &MessageArrival,
    fence: Fence,
    opened: Vec<Cells>,
) -> Result<Result<(), MessageAnswer>, TransactionError> {
    if !opened.is_empty() {
        return Ok(Ok(()));
    }
    let (_, values) = opening(arrival)?;
    let rows = session.ask(FENCE, &values[..3]).await.map_err(TransactionFault::before_commit)?;
    let found = rows
        .first()
        .map(|row| row.number(0))
        .transpose()
        .map_err(TransactionFault::before_commit)?;
    Ok(Err(if found == Some(fence.get()) {
        MessageAnswer::Duplicate
    } else {
        MessageAnswer::Fenced
    }))
}

/// Whether the message is still held, and by nobody else.
async fn let_go(
    session: &mut impl SqlSession,
    arrival: &MessageArrival,
    opened: &[Cells],
) -> Result<Result<(), MessageAnswer>, TransactionError> {
    if !is_yes(opened) {
        return Ok(Err(MessageAnswer::Busy));
    }
    let mut values = versioned(arrival)?;
    values.push(arrival.message.id.as_str().into());
    let gone = session.ask(LET_GO, &values).await.map_err(TransactionFault::before_commit)?;
    Ok(if gone.is_empty() { Err(MessageAnswer::Duplicate) } else { Ok(()) })
}

fn record_values(MessageArrival { consumer, message, .. }: &MessageArrival) -> Vec<Cell> {
    let digest = message.digest();
    vec![consumer.number.into(), message.id.as_str().into(), digest.as_bytes()[..].into()]
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

fn held(arrival: &MessageArrival) -> Result<Vec<Cell>, TransactionError> {
    let message = &arrival.message;
    let mut values = versioned(arrival)?;
    values.extend([
        message.id.as_str().into(),
        i64::from(message.identity == Identity::Business).into(),
        (&*message.source).into(),
        (&*encode_headers(&message.headers)).into(),
        (&*message.payload).into(),
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

fn fail(arrival: &MessageArrival, reason: &str) -> (&'static str, Vec<Cell>) {
    let mut values = record_values(arrival);
    values.push((&*reason.replace('\0', "\u{fffd}")).into());
    (FAIL, values)
}

pub(crate) fn one(rows: &[Cells]) -> Result<&Cells, TransactionFault> {
    rows.first().ok_or_else(|| TransactionFault::unanswered("the server answered without a row"))
}

fn is_yes(rows: &[Cells]) -> bool {
    rows.first().is_some_and(|row| matches!(row.number(0), Ok(1)))
}

fn misused(words: &'static str) -> TransactionError {
    StoreError::unavailable(format!("a message at the door {words}")).into()
}
