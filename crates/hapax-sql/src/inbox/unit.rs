//! The conversation inside a transaction that acts on messages.

use hapax_core::{
    Fence, StoreError, Timestamp, TransactionError,
    inbox::{
        Digest, Judgement, MessageAnswer, MessageArrival, MessageEnd, MessageState, Proof,
        StoredMessage, judge,
    },
    limits::CLAIM_ROUNDS_MAX,
};

use super::{
    InboxContext, lock_name,
    values::{self, misused, stamped},
};
use crate::{ResultRow, Session, Statement, TransactionFault, Value};

/// What a transaction knows of the messages it acts on: that it is for them, and for nothing else.
#[derive(Debug)]
pub struct ForMessages {
    arrivals: Vec<MessageArrival>,
    last: Option<i64>,
    held: u32,
}

impl ForMessages {
    /// The messages, at least one.
    pub fn arrivals(&self) -> &[MessageArrival] {
        &self.arrivals
    }

    /// What the key of a message has come to, where that was asked for and is known.
    pub fn last(&self) -> Option<i64> {
        self.last
    }

    /// How many messages of its key are held, where that was asked for.
    pub fn held(&self) -> u32 {
        self.held
    }
}

/// Finds out whether nobody has acted on a message, and writes that somebody does.
///
/// `begin` goes out together with the first statement, where the transaction has not begun yet.
pub async fn enter(
    session: &mut impl Session,
    context: InboxContext,
    begin: Option<&'static str>,
    arrival: &MessageArrival,
) -> Result<Result<ForMessages, MessageAnswer>, TransactionError> {
    let mut conversation = Conversation { session, context, begin };
    let answer = match arrival.proof {
        Proof::Record => conversation.record(arrival).await?,
        Proof::Place(fence) => conversation.place(arrival, fence).await?,
        Proof::Held => conversation.let_go(arrival).await?,
    };
    if let Some(answer) = answer {
        return Ok(Err(answer));
    }
    let mut entered = ForMessages { arrivals: vec![arrival.clone()], last: None, held: 0 };
    if arrival.in_turn {
        if arrival.proof != Proof::Held && !conversation.lock_key(arrival).await? {
            return Ok(Err(MessageAnswer::Busy));
        }
        let rows = conversation.ask(context.statements.read_key, &values::key(arrival)?).await?;
        let row = one(&rows).map_err(TransactionFault::before_commit)?;
        entered.last = row.maybe_number(0).map_err(TransactionFault::before_commit)?;
        let held = row.number(1).map_err(TransactionFault::before_commit)?;
        entered.held = u32::try_from(held).unwrap_or(u32::MAX);
    }
    Ok(Ok(entered))
}

/// The same for several messages at once, in as many statements as for one; `None` if somebody has
/// acted on one of them, is at it, or if they cannot be taken together: what was written then comes to
/// nothing, and each is to be entered alone.
///
/// Messages can be taken together if all of them have records, or are of one partition in their order,
/// and none has to be in turn.
pub async fn enter_all(
    session: &mut impl Session,
    context: InboxContext,
    begin: Option<&'static str>,
    arrivals: &[MessageArrival],
) -> Result<Option<ForMessages>, TransactionError> {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return Ok(None) };
    let are_alike = |arrival: &MessageArrival| {
        arrival.proof == first.proof && arrival.consumer == first.consumer && !arrival.in_turn
    };
    if !arrivals.iter().all(are_alike) {
        return Ok(None);
    }
    let mut conversation = Conversation { session, context, begin };
    let is_first = match first.proof {
        Proof::Record => conversation.record_all(first.consumer.number, arrivals).await?,
        Proof::Place(fence) if are_in_order(arrivals) => {
            conversation.move_place([first, last], fence).await?
        }
        Proof::Place(_) | Proof::Held => false,
    };
    let entered = || ForMessages { arrivals: arrivals.to_vec(), last: None, held: 0 };
    Ok(is_first.then(entered))
}

/// Writes how it ended for each of the messages; the commit is left to do.
pub async fn leave(
    session: &mut impl Session,
    context: InboxContext,
    messages: &ForMessages,
    end: &MessageEnd,
) -> Result<(), TransactionError> {
    for arrival in &messages.arrivals {
        leave_one(session, context, arrival, end).await?;
    }
    Ok(())
}

async fn leave_one(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
    arrival: &MessageArrival,
    end: &MessageEnd,
) -> Result<(), TransactionError> {
    let MessageArrival { consumer, message, proof, in_turn } = arrival;
    let (digest, headers, reason);
    let mark = |state| (statements.mark, values::mark(arrival, &state).to_vec());
    let mut notes: Vec<(&'static str, Vec<Value<'_>>)> = Vec::new();
    if *in_turn && end.moves_on() {
        notes.push((statements.move_on, values::versioned(arrival)?.to_vec()));
    }
    let has_record = !matches!(proof, Proof::Place(_));
    match end {
        MessageEnd::Done if *proof == Proof::Held => notes.push(mark(MessageState::Done)),
        MessageEnd::Done => {}
        MessageEnd::Passed if has_record => notes.push(mark(MessageState::Passed)),
        MessageEnd::Passed => {}
        MessageEnd::Held(kept) => {
            headers = kept.stored_headers();
            let payload = kept.stored_payload();
            notes.push((statements.hold, stamped(values::held(arrival, &headers, payload)?, now)));
            if has_record {
                notes.push(mark(MessageState::Held));
            }
        }
        MessageEnd::Failed(why) => {
            (digest, reason) = (message.digest(), storable(why));
            notes.push((statements.fail, failed(arrival, &digest, &reason, now)));
        }
        MessageEnd::Dead(letter) => {
            (digest, reason) = (message.digest(), storable(&letter.reason.to_string()));
            headers = letter.kept.stored_headers();
            let letter = values::letter(consumer.number, letter, &digest, &headers);
            notes.push((statements.bury, stamped(letter, now)));
            notes.push((statements.fail, failed(arrival, &digest, &reason, now)));
        }
    }
    let notes: Vec<_> =
        notes.iter().map(|(text, values)| Statement { text, values: values.as_slice() }).collect();
    session.ask_all(&notes).await.map(|_| ()).map_err(TransactionFault::before_commit)
}

fn failed<'a>(
    arrival: &'a MessageArrival,
    digest: &'a Digest,
    reason: &'a str,
    now: Option<Timestamp>,
) -> Vec<Value<'a>> {
    let [consumer, id, digest] = values::record(arrival, digest);
    stamped([consumer, id, digest, reason.into()], now)
}

/// No database keeps a zero in text everywhere; what cannot be kept is marked.
fn storable(reason: &str) -> String {
    reason.replace('\0', "\u{fffd}")
}

/// The row that must be there.
pub(super) fn one<R: ResultRow>(rows: &[R]) -> Result<&R, TransactionFault> {
    rows.first().ok_or_else(|| TransactionFault::unanswered("there was no row where one has to be"))
}

/// Whether these follow each other in one partition.
fn are_in_order(arrivals: &[MessageArrival]) -> bool {
    let place = |arrival: &MessageArrival| arrival.message.place.clone();
    arrivals.iter().all(|arrival| arrival.message.place.is_some())
        && arrivals.windows(2).all(|pair| match (place(&pair[0]), place(&pair[1])) {
            (Some(before), Some(after)) => {
                before.partition == after.partition && before.offset < after.offset
            }
            (_, _) => false,
        })
}

/// What is said until a message is known to be the first, or not to be.
struct Conversation<'s, S> {
    session: &'s mut S,
    context: InboxContext,
    /// What begins the transaction, until it has begun.
    begin: Option<&'static str>,
}

impl<S: Session> Conversation<'_, S> {
    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<S::Row>, TransactionError> {
        let answered = match self.begin.take() {
            None => self.session.ask(text, values).await,
            Some(begin) => {
                let statements = [Statement::plain(begin), Statement { text, values }];
                let answers = self.session.ask_all(&statements).await;
                answers.map(|mut answers| answers.pop().unwrap_or_default())
            }
        };
        answered.map_err(TransactionFault::before_commit)
    }

    /// Writes the record under its lock, or says why there is none to be had.
    async fn record(
        &mut self,
        arrival: &MessageArrival,
    ) -> Result<Option<MessageAnswer>, TransactionError> {
        let InboxContext { statements, now, .. } = self.context;
        let digest = arrival.message.digest();
        let [consumer, id, content] = values::record(arrival, &digest);
        let mut values = stamped([consumer, id, content], now);
        let locks = self.locks(arrival.consumer.number, &[arrival.message.id.as_str()]);
        values.extend(locks.iter().copied().map(Value::from));
        for _ in 0..CLAIM_ROUNDS_MAX {
            if !self.ask(statements.record, &values).await?.is_empty() {
                return Ok(None);
            }
            let rows = self.ask(statements.look, &stamped([consumer, id], now)).await?;
            let LookedUp { has_lock, found } = looked_up(&rows)?;
            let Some((judged_at, found)) = found else {
                // Nothing is stored yet: somebody is at it, or was until a moment ago.
                if has_lock {
                    continue;
                }
                return Ok(Some(MessageAnswer::Busy));
            };
            match judge(judged_at, &found, digest, arrival.consumer.retention) {
                Judgement::Answer(answer) => return Ok(Some(answer)),
                Judgement::Spent if !has_lock => return Ok(Some(MessageAnswer::Busy)),
                Judgement::Spent => {
                    let seen = found.received_at.as_micros().into();
                    let renewal = stamped([consumer, id, content, seen], now);
                    if !self.ask(statements.renew, &renewal).await?.is_empty() {
                        return Ok(None);
                    }
                }
            }
        }
        Err(TransactionError::conflict("other writers kept changing the record"))
    }

    /// Writes all records, each under its lock; whether that could be done.
    async fn record_all(
        &mut self,
        consumer: i32,
        arrivals: &[MessageArrival],
    ) -> Result<bool, TransactionError> {
        let ids: Vec<_> = arrivals.iter().map(|arrival| arrival.message.id.as_str()).collect();
        let digests: Vec<_> = arrivals.iter().map(|arrival| arrival.message.digest()).collect();
        let digests: Vec<_> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let values = [consumer.into(), Value::Texts(&ids), Value::ManyBytes(&digests)];
        let mut values = stamped(values, self.context.now);
        let locks = self.locks(consumer, &ids);
        if !locks.is_empty() {
            values.push(Value::Numbers(&locks));
        }
        let written = self.ask(self.context.statements.record_all, &values).await?;
        Ok(written.len() == arrivals.len())
    }

    /// The numbers of the locks of these messages, where they have locks.
    fn locks(&self, consumer: i32, ids: &[&str]) -> Vec<i64> {
        let Some(salt) = self.context.salt else { return Vec::new() };
        ids.iter().map(|id| salt.lock_number("message", &lock_name(consumer, id))).collect()
    }

    /// Whether the partition has come to this message, and no further.
    async fn place(
        &mut self,
        arrival: &MessageArrival,
        fence: Fence,
    ) -> Result<Option<MessageAnswer>, TransactionError> {
        if self.move_place([arrival, arrival], fence).await? {
            return Ok(None);
        }
        let Some(place) = &arrival.message.place else { return Err(misused("without a place")) };
        let values = values::place(arrival.consumer.number, fence, [place, place]);
        let rows = self.ask(self.context.statements.fence, &values[..3]).await?;
        let found = rows.first().map(|row| row.number(0)).transpose();
        let found = found.map_err(TransactionFault::before_commit)?;
        let is_own = found == Some(fence.get());
        Ok(Some(if is_own { MessageAnswer::Duplicate } else { MessageAnswer::Fenced }))
    }

    /// Moves a partition from the first of these behind the last; whether it was there.
    async fn move_place(
        &mut self,
        [first, last]: [&MessageArrival; 2],
        fence: Fence,
    ) -> Result<bool, TransactionError> {
        let (Some(from), Some(to)) = (&first.message.place, &last.message.place) else {
            return Err(misused("without a place"));
        };
        let values = values::place(first.consumer.number, fence, [from, to]);
        Ok(!self.ask(self.context.statements.place, &values).await?.is_empty())
    }

    /// Whether the message is still held, and nobody else is at its key.
    async fn let_go(
        &mut self,
        arrival: &MessageArrival,
    ) -> Result<Option<MessageAnswer>, TransactionError> {
        if !self.lock_key(arrival).await? {
            return Ok(Some(MessageAnswer::Busy));
        }
        let [consumer, key, version] = values::versioned(arrival)?;
        let values = [consumer, key, version, arrival.message.id.as_str().into()];
        let gone = self.ask(self.context.statements.let_go, &values).await?;
        Ok(gone.is_empty().then_some(MessageAnswer::Duplicate))
    }

    async fn lock_key(&mut self, arrival: &MessageArrival) -> Result<bool, TransactionError> {
        let key = values::key(arrival)?;
        let Some(text) = self.context.statements.lock_key else { return Ok(true) };
        let rows = self.ask(text, &key).await?;
        one(&rows).and_then(|row| row.flag(0)).map_err(TransactionFault::before_commit)
    }
}

struct LookedUp {
    has_lock: bool,
    /// The record, and the instant by which it is judged.
    found: Option<(Timestamp, StoredMessage)>,
}

fn looked_up(rows: &[impl ResultRow]) -> Result<LookedUp, TransactionError> {
    let fault = TransactionFault::before_commit;
    let row = one(rows).map_err(fault)?;
    let has_lock = row.flag(0).map_err(fault)?;
    let Some(digest) = row.maybe_bytes(1).map_err(fault)? else {
        return Ok(LookedUp { has_lock, found: None });
    };
    let damaged =
        |what: &str| StoreError::damaged(format!("{what} of a message's record is unknown"));
    let digest = Digest::from_bytes(digest.try_into().map_err(|_| damaged("the digest"))?);
    let reason = row.maybe_text(3).map_err(fault)?.map(str::to_owned);
    let state = MessageState::from_number(row.small(2).map_err(fault)?, reason);
    let state = state.ok_or_else(|| damaged("the state"))?;
    let received_at = Timestamp::from_micros(row.number(4).map_err(fault)?);
    let judged_at = Timestamp::from_micros(row.number(5).map_err(fault)?);
    Ok(LookedUp {
        has_lock,
        found: Some((judged_at, StoredMessage { digest, state, received_at })),
    })
}
