//! What a record means for a delivery, and when it is a message's turn.

use std::time::Duration;

use super::{arrival::MessageAnswer, message::Digest};
use crate::time::Timestamp;

/// What is kept of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The digest of its content.
    pub digest: Digest,
    /// What became of it.
    pub state: MessageState,
    /// When that was, by the database's clock.
    pub received_at: Timestamp,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageState {
    /// It was acted on.
    Done,
    /// It failed for good, for this reason.
    Failed(String),
    /// It waits for its turn.
    Held,
    /// It was older than what its key had come to.
    Passed,
}

impl MessageState {
    /// The state with this number, as it is kept.
    pub fn from_number(number: i16, reason: Option<String>) -> Option<Self> {
        match number {
            1 => Some(Self::Done),
            2 => Some(Self::Failed(reason.unwrap_or_default())),
            3 => Some(Self::Held),
            4 => Some(Self::Passed),
            _ => None,
        }
    }

    /// The number it is kept as.
    pub fn number(&self) -> i16 {
        match self {
            Self::Done => 1,
            Self::Failed(_) => 2,
            Self::Held => 3,
            Self::Passed => 4,
        }
    }
}

/// What a record means for a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// This.
    Answer(MessageAnswer),
    /// Nothing any more: the message is as good as new.
    Spent,
}

/// What a record means for a delivery with this content, under this retention.
///
/// A message that is still held is never spent: it would run twice.
pub fn judge(
    now: Timestamp,
    found: &StoredMessage,
    digest: Digest,
    retention: Duration,
) -> Judgement {
    if found.state != MessageState::Held && found.received_at.plus(retention) <= now {
        return Judgement::Spent;
    }
    Judgement::Answer(if found.digest != digest {
        MessageAnswer::Conflict
    } else {
        match &found.state {
            MessageState::Failed(reason) => MessageAnswer::Failed(reason.clone()),
            MessageState::Done | MessageState::Held | MessageState::Passed => {
                MessageAnswer::Duplicate
            }
        }
    })
}

/// Which messages of a key are acted on, and when.
///
/// ```
/// use hapax_core::inbox::Guard;
///
/// // An order's changes are acted on one after the other, from version 1 on.
/// let strict = Guard::EveryOne { first: 1, held_max: 100 };
/// assert_ne!(strict, Guard::Newest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Those that are newer than what the key has come to; older ones are passed over.
    Newest,
    /// Every version, one after the other: whoever is ahead is held.
    EveryOne {
        /// The version a key begins with.
        first: i64,
        /// Most messages of one key that are held.
        held_max: u32,
    },
}

/// Whether it is a message's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is.
    Now,
    /// It was: something newer has been acted on.
    Over,
    /// Not yet: there is a gap before it.
    NotYet,
    /// Not yet, and no more can be held: the gap has to be given up.
    Full,
}

/// Whether it is the turn of this version, where its key has come to `last` and so many are held.
pub fn turn(guard: Guard, last: Option<i64>, version: i64, held: u32) -> Turn {
    match (guard, last) {
        (_, Some(last)) if version <= last => Turn::Over,
        (Guard::Newest, _) => Turn::Now,
        (Guard::EveryOne { first, held_max }, last) => {
            let expected = last.map_or(first, |last| last.saturating_add(1));
            if version < expected {
                Turn::Over
            } else if version == expected {
                Turn::Now
            } else if held < held_max {
                Turn::NotYet
            } else {
                Turn::Full
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn found(state: MessageState) -> StoredMessage {
        StoredMessage { digest: Digest::of(b"hello"), state, received_at: Timestamp::ZERO }
    }

    fn judged(state: MessageState, after: Duration, payload: &[u8]) -> Judgement {
        judge(Timestamp::ZERO.plus(after), &found(state), Digest::of(payload), DAY)
    }

    #[test]
    fn what_is_kept_answers_until_its_retention_ends() {
        let late = DAY - Duration::from_micros(1);
        assert_eq!(
            judged(MessageState::Done, late, b"hello"),
            Judgement::Answer(MessageAnswer::Duplicate)
        );
        assert_eq!(judged(MessageState::Done, DAY, b"hello"), Judgement::Spent);
        assert_eq!(judged(MessageState::Done, DAY, b"other"), Judgement::Spent);
    }

    #[test]
    fn other_content_is_a_conflict_whatever_became_of_the_first() {
        for state in [
            MessageState::Done,
            MessageState::Failed("no".into()),
            MessageState::Held,
            MessageState::Passed,
        ] {
            let judged = judged(state, Duration::ZERO, b"other");
            assert_eq!(judged, Judgement::Answer(MessageAnswer::Conflict));
        }
    }

    #[test]
    fn a_held_message_is_never_spent() {
        assert_eq!(
            judged(MessageState::Held, DAY * 9, b"hello"),
            Judgement::Answer(MessageAnswer::Duplicate)
        );
    }

    #[test]
    fn the_newest_guard_lets_gaps_pass_and_nothing_older() {
        for (last, version, expected) in [
            (None, 7, Turn::Now),
            (Some(7), 8, Turn::Now),
            (Some(7), 20, Turn::Now),
            (Some(7), 7, Turn::Over),
            (Some(7), 6, Turn::Over),
        ] {
            assert_eq!(turn(Guard::Newest, last, version, 0), expected, "{last:?} {version}");
        }
    }

    #[test]
    fn the_sequence_guard_lets_one_after_the_other_pass() {
        let guard = Guard::EveryOne { first: 1, held_max: 2 };
        for (last, version, held, expected) in [
            (None, 1, 0, Turn::Now),
            (None, 0, 0, Turn::Over),
            (None, 2, 1, Turn::NotYet),
            (None, 2, 2, Turn::Full),
            (Some(3), 4, 2, Turn::Now),
            (Some(3), 3, 0, Turn::Over),
            (Some(3), 5, 0, Turn::NotYet),
            (Some(i64::MAX), i64::MAX, 0, Turn::Over),
        ] {
            assert_eq!(turn(guard, last, version, held), expected, "{last:?} {version} {held}");
        }
    }
}
