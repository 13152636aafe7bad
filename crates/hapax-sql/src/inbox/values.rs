//! What the statements take, in their order.

use hapax_core::{
    Fence, StoreError, Timestamp, TransactionError,
    inbox::{Digest, Identity, Letter, LetterId, MessageArrival, MessageState, Place},
};

use crate::Value;

/// The same, with the instant behind it where the database has no clock.
pub(super) fn stamped<'a>(
    values: impl Into<Vec<Value<'a>>>,
    now: Option<Timestamp>,
) -> Vec<Value<'a>> {
    let mut values = values.into();
    values.extend(now.map(|now| Value::from(now.as_micros())));
    values
}

pub(super) fn record<'a>(arrival: &'a MessageArrival, digest: &'a Digest) -> [Value<'a>; 3] {
    let MessageArrival { consumer, message, .. } = arrival;
    [consumer.number.into(), message.id.as_str().into(), digest.as_bytes().into()]
}

/// From the first of some messages to the last, which are in one partition.
pub(super) fn place<'a>(
    consumer: i32,
    fence: Fence,
    [first, last]: [&'a Place; 2],
) -> [Value<'a>; 6] {
    [
        consumer.into(),
        (&*first.partition.source).into(),
        first.partition.number.into(),
        fence.get().into(),
        first.offset.into(),
        last.offset.into(),
    ]
}

pub(super) fn key(arrival: &MessageArrival) -> Result<[Value<'_>; 2], TransactionError> {
    let Some(key) = &arrival.message.key else { return Err(misused("in turn, without a key")) };
    Ok([arrival.consumer.number.into(), (&**key).into()])
}

pub(super) fn versioned(arrival: &MessageArrival) -> Result<[Value<'_>; 3], TransactionError> {
    let Some(version) = arrival.message.version else {
        return Err(misused("in turn, without a version"));
    };
    let [consumer, key] = key(arrival)?;
    Ok([consumer, key, version.into()])
}

pub(super) fn held<'a>(
    arrival: &'a MessageArrival,
    headers: &'a [u8],
    payload: &'a [u8],
) -> Result<[Value<'a>; 8], TransactionError> {
    let message = &arrival.message;
    let [consumer, key, version] = versioned(arrival)?;
    Ok([
        consumer,
        key,
        version,
        message.id.as_str().into(),
        (message.identity == Identity::Business).into(),
        (&*message.source).into(),
        headers.into(),
        payload.into(),
    ])
}

pub(super) fn mark<'a>(arrival: &'a MessageArrival, state: &MessageState) -> [Value<'a>; 3] {
    let MessageArrival { consumer, message, .. } = arrival;
    [consumer.number.into(), message.id.as_str().into(), state.number().into()]
}

/// A dead letter, with its headers as they are kept.
pub(super) fn letter<'a>(
    consumer: i32,
    Letter { kept, reason }: &'a Letter,
    digest: &'a Digest,
    headers: &'a [u8],
) -> [Value<'a>; 9] {
    let message = kept.message();
    [
        consumer.into(),
        message.id.as_str().into(),
        digest.as_bytes().into(),
        reason.code().into(),
        reason.detail().into(),
        (&*message.source).into(),
        message.key.as_deref().into(),
        headers.into(),
        (&**kept.stored_payload()).into(),
    ]
}

pub(super) fn letter_id(consumer: i32, letter: &LetterId) -> [Value<'_>; 4] {
    let LetterId { message_id, content, dead_at } = letter;
    [consumer.into(), (&**message_id).into(), content.as_bytes().into(), dead_at.as_micros().into()]
}

pub(super) fn misused(words: &'static str) -> TransactionError {
    StoreError::unavailable(format!("a message at the door {words}")).into()
}
