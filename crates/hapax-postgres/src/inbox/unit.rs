//! The conversation inside a transaction that acts on a message.

use hapax_core::{
    Fence, StoreError, Timestamp, TransactionError,
    inbox::{
        Answer, Arrival, Digest, End, Found, Identity, Judgement, Message, Proof, Reason, State,
        encode_headers, judge,
    },
    limits::CLAIM_ROUNDS_MAX,
};

use super::{
    cell::{Cell, Cells},
    desk::Desk,
};
use crate::transaction::{error::Fault, unit::LockName};

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
    pub(crate) arrival: Arrival,
    /// What its key has come to.
    pub(crate) last: Option<i64>,
    /// How many of its key are held.
    pub(crate) held: u32,
}

impl Carried {
    /// The lock of its record, which only this transaction has.
    pub(crate) fn lock(&self) -> Option<LockName> {
        let Arrival { consumer, message, proof, .. } = &self.arrival;
        let name = || format!("{}\n{}", consumer.number, message.id.as_str());
        (*proof == Proof::Record).then(|| LockName { kind: "message", name: name() })
    }
}

/// The statement that goes out with `BEGIN`.
pub(crate) fn opening(arrival: &Arrival) -> Result<(&'static str, Vec<Cell>), TransactionError> {
    let Arrival { consumer, message, proof, .. } = arrival;
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
    desk: &mut impl Desk,
    arrival: &Arrival,
    opened: Vec<Cells>,
) -> Result<Result<Carried, Answer>, TransactionError> {
    let entered = match arrival.proof {
        Proof::Record => record(desk, arrival, opened).await?,
        Proof::Place(fence) => place(desk, arrival, fence, opened).await?,
        Proof::Held => let_go(desk, arrival, &opened).await?,
    };
    if let Err(answer) = entered {
        return Ok(Err(answer));
    }
    let mut carried = Carried { arrival: arrival.clone(), last: None, held: 0 };
    if arrival.in_turn {
        let key = key_values(arrival)?;
        if arrival.proof != Proof::Held
            && !is_yes(&desk.ask(LOCK_KEY, &key).await.map_err(Fault::before_commit)?)
        {
            return Ok(Err(Answer::Busy));
        }
        let rows = desk.ask(READ_KEY, &key).await.map_err(Fault::before_commit)?;
        let row = one(&rows).map_err(Fault::before_commit)?;
        carried.last = row.maybe_number(0).map_err(Fault::before_commit)?;
        let held = row.number(1).map_err(Fault::before_commit)?;
        carried.held = u32::try_from(held).unwrap_or(u32::MAX);
    }
    Ok(Ok(carried))
}

/// Writes how it ended; the commit is left to do.
pub(crate) async fn leave(
    desk: &mut impl Desk,
    carried: &Carried,
    end: &End,
) -> Result<(), TransactionError> {
    let Carried { arrival, .. } = carried;
    let mut notes: Vec<(&'static str, Vec<Cell>)> = Vec::new();
    if arrival.in_turn && end.moves_on() {
        notes.push((MOVE_ON, versioned(arrival)?));
    }
    let has_record = !matches!(arrival.proof, Proof::Place(_));
    match end {
        End::Done if arrival.proof == Proof::Held => notes.push(mark(arrival, &State::Done)),
        End::Done => {}
        End::Passed if has_record => notes.push(mark(arrival, &State::Passed)),
        End::Passed => {}
        End::Held => {
            notes.push((HOLD, held(arrival)?));
            if has_record {
                notes.push(mark(arrival, &State::Held));
            }
        }
        End::Failed(reason) => notes.push(fail(arrival, reason)),
        End::Dead(reason) => {
            notes.push((BURY, letter(arrival.consumer.number, &arrival.message, reason)));
            notes.push(fail(arrival, &reason.to_string()));
        }
    }
    for (text, values) in notes {
        desk.ask(text, &values).await.map_err(Fault::before_commit)?;
    }
    Ok(())
}

/// What [`BURY`] takes.
pub(crate) fn letter(consumer: i32, message: &Message, reason: &Reason) -> Vec<Cell> {
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
    desk: &mut impl Desk,
    arrival: &Arrival,
    mut opened: Vec<Cells>,
) -> Result<Result<(), Answer>, TransactionError> {
    let fault = Fault::before_commit;
    let values = record_values(arrival);
    for round in 0..CLAIM_ROUNDS_MAX {
        if round > 0 {
            opened = desk.ask(RECORD, &values).await.map_err(fault)?;
        }
        if !opened.is_empty() {
            return Ok(Ok(()));
        }
        let rows = desk.ask(LOOK, &values[..2]).await.map_err(fault)?;
        let row = one(&rows).map_err(fault)?;
        let has_lock = row.number(0).map_err(fault)? == 1;
        let Some((now, found)) = found(row)? else {
            // Nothing is stored yet: somebody is at it, or was until a moment ago.
            if has_lock {
                continue;
            }
            return Ok(Err(Answer::Busy));
        };
        match judge(now, &found, arrival.message.digest(), arrival.consumer.retention) {
            Judgement::Answer(answer) => return Ok(Err(answer)),
            Judgement::Spent if !has_lock => return Ok(Err(Answer::Busy)),
            Judgement::Spent => {
                let mut values = values.clone();
                values.push(found.received_at.as_micros().into());
                if !desk.ask(RENEW, &values).await.map_err(fault)?.is_empty() {
                    return Ok(Ok(()));
                }
            }
        }
    }
    Err(TransactionError::conflict("other writers kept changing the record"))
}

fn found(row: &Cells) -> Result<Option<(Timestamp, Found)>, TransactionError> {
    let fault = Fault::before_commit;
    let Some(digest) = row.maybe_bytes(1).map_err(fault)? else { return Ok(None) };
    let damaged =
        |what: &str| StoreError::damaged(format!("{what} of a message's record is unknown"));
    let digest = digest.try_into().map_err(|_| damaged("the digest"))?;
    let state = i16::try_from(row.number(2).map_err(fault)?).unwrap_or_default();
    let state = State::from_number(state, row.maybe_text(3).map_err(fault)?);
    let received_at = Timestamp::from_micros(row.number(4).map_err(fault)?);
    let now = Timestamp::from_micros(row.number(5).map_err(fault)?);
    let state = state.ok_or_else(|| damaged("the state"))?;
    Ok(Some((now, Found { digest: Digest::from_bytes(digest), state, received_at })))
}

/// Whether the partition has come to this message, and no further.
async fn place(
    desk: &mut impl Desk,
    arrival: &Arrival,
    fence: Fence,
    opened: Vec<Cells>,
) -> Result<Result<(), Answer>, TransactionError> {
    if !opened.is_empty() {
        return Ok(Ok(()));
    }
    let (_, values) = opening(arrival)?;
    let rows = desk.ask(FENCE, &values[..3]).await.map_err(Fault::before_commit)?;
    let found = rows.first().map(|row| row.number(0)).transpose().map_err(Fault::before_commit)?;
    Ok(Err(if found == Some(fence.get()) { Answer::Duplicate } else { Answer::Fenced }))
}

/// Whether the message is still held, and by nobody else.
async fn let_go(
    desk: &mut impl Desk,
    arrival: &Arrival,
    opened: &[Cells],
) -> Result<Result<(), Answer>, TransactionError> {
    if !is_yes(opened) {
        return Ok(Err(Answer::Busy));
    }
    let mut values = versioned(arrival)?;
    values.push(arrival.message.id.as_str().into());
    let gone = desk.ask(LET_GO, &values).await.map_err(Fault::before_commit)?;
    Ok(if gone.is_empty() { Err(Answer::Duplicate) } else { Ok(()) })
}

fn record_values(Arrival { consumer, message, .. }: &Arrival) -> Vec<Cell> {
    let digest = message.digest();
    vec![consumer.number.into(), message.id.as_str().into(), digest.as_bytes()[..].into()]
}

fn key_values(arrival: &Arrival) -> Result<Vec<Cell>, TransactionError> {
    let Some(key) = &arrival.message.key else { return Err(misused("in turn, without a key")) };
    Ok(vec![arrival.consumer.number.into(), (&**key).into()])
}

fn versioned(arrival: &Arrival) -> Result<Vec<Cell>, TransactionError> {
    let Some(version) = arrival.message.version else {
        return Err(misused("in turn, without a version"));
    };
    let mut values = key_values(arrival)?;
    values.push(version.into());
    Ok(values)
}

fn held(arrival: &Arrival) -> Result<Vec<Cell>, TransactionError> {
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

fn mark(Arrival { consumer, message, .. }: &Arrival, state: &State) -> (&'static str, Vec<Cell>) {
    let state = i64::from(state.number());
    (MARK, vec![consumer.number.into(), message.id.as_str().into(), state.into()])
}

fn fail(arrival: &Arrival, reason: &str) -> (&'static str, Vec<Cell>) {
    let mut values = record_values(arrival);
    values.push((&*reason.replace('\0', "\u{fffd}")).into());
    (FAIL, values)
}

pub(crate) fn one(rows: &[Cells]) -> Result<&Cells, Fault> {
    rows.first().ok_or_else(|| Fault::unanswered("the server answered without a row"))
}

fn is_yes(rows: &[Cells]) -> bool {
    rows.first().is_some_and(|row| matches!(row.number(0), Ok(1)))
}

fn misused(words: &'static str) -> TransactionError {
    StoreError::unavailable(format!("a message at the door {words}")).into()
}
