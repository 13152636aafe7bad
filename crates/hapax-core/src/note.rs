//! What people did to records, and why: notes that outlive the records.
//!
//! Hapax keeps some of its own: what happened to a record apart from the usual, which the record itself forgets.
//! They are kept beside the writes they tell of and after them, so one may be missing, and none is wrong.

use std::{fmt, sync::Arc};

use crate::{
    codec::Unreadable,
    limits::{NOTE_WHO_BYTES_MAX, NOTE_WHY_BYTES_MAX, NOTED_ATTEMPTS},
    operation::OperationId,
    record::Fence,
    time::Timestamp,
};

/// One thing a person set out to do to a record, or what became of it.
///
/// A change by a person is noted twice: before it, as [`Phase::Intended`], and after it. An
/// intention without an end means that whoever had it died on the way: look at the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which operation.
    pub id: OperationId,
    /// The fence the person saw.
    pub fence: Fence,
    /// What is done.
    pub deed: Deed,
    /// How far it has come.
    pub phase: Phase,
    /// Who does it, and why.
    pub reason: Reason,
}

impl Note {
    /// What Hapax itself did, in words; `None` if no more is kept of a key that was attempted this often.
    ///
    /// ```
    /// use hapax_core::{Deed, Fence, Note, OperationId};
    ///
    /// let id = OperationId::from_bytes([7; 16]);
    /// let note = |fence| {
    ///     let fence = Fence::from_stored(fence)?;
    ///     Note::of_hapax(id, fence, Deed::SentAgain, "sent again, as attempt 2")
    /// };
    /// assert!(note(2).is_some() && note(33).is_none() && note(64).is_some());
    /// ```
    pub fn of_hapax(id: OperationId, fence: Fence, deed: Deed, why: &str) -> Option<Self> {
        let number = fence.get().unsigned_abs();
        let is_kept = number <= NOTED_ATTEMPTS || number.is_power_of_two();
        let reason = Reason::of_hapax(why);
        is_kept.then_some(Self { id, fence, deed, phase: Phase::Done, reason })
    }
}

/// A note, and when the store took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The store's clock.
    pub at: Timestamp,
    /// The note.
    pub note: Note,
}

/// What is done to a record, by a person or by Hapax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Gives the key back: the next arrival executes.
    Release = 1,
    /// Says that it happened, and what it answered.
    ResolveCompleted = 2,
    /// Says that it failed for good, and what it answered.
    ResolveFailed = 3,
    /// Says that it never happened: the next arrival executes.
    ResolveReleased = 4,
    /// Hapax: somebody took over from an owner that vanished, or from a doubt.
    TookOver = 5,
    /// Hapax: the upstream was asked what became of it.
    Asked = 6,
    /// Hapax: an attempt ended and nobody knows whether it took effect.
    LeftInDoubt = 7,
    /// Hapax: an attempt gave the key back.
    GaveBack = 8,
    /// Hapax: it was sent once more, under a fence of its own.
    SentAgain = 9,
}

impl Deed {
    /// Every deed.
    pub const ALL: [Self; 9] = [
        Self::Release,
        Self::ResolveCompleted,
        Self::ResolveFailed,
        Self::ResolveReleased,
        Self::TookOver,
        Self::Asked,
        Self::LeftInDoubt,
        Self::GaveBack,
        Self::SentAgain,
    ];

    /// Whether Hapax did it, and no person.
    pub const fn is_of_hapax(self) -> bool {
        match self {
            Self::Release
            | Self::ResolveCompleted
            | Self::ResolveFailed
            | Self::ResolveReleased => false,
            Self::TookOver | Self::Asked | Self::LeftInDoubt | Self::GaveBack | Self::SentAgain => {
                true
            }
        }
    }

    /// The version of notes that first knew it: one that does not is told so.
    const fn format(self) -> i16 {
        if self.is_of_hapax() { 2 } else { 1 }
    }

    /// The word used in SQL views, JSON and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::ResolveCompleted => "resolve_completed",
            Self::ResolveFailed => "resolve_failed",
            Self::ResolveReleased => "resolve_released",
            Self::TookOver => "took_over",
            Self::Asked => "asked",
            Self::LeftInDoubt => "left_in_doubt",
            Self::GaveBack => "gave_back",
            Self::SentAgain => "sent_again",
        }
    }
}

/// How far a deed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It is about to be tried.
    Intended = 1,
    /// It was written.
    Done = 2,
    /// It was not written: the record had changed, or the store refused.
    Refused = 3,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 3] = [Self::Intended, Self::Done, Self::Refused];

    /// The word used in SQL views, JSON and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }
}

/// Who does something to a record, and why. Cloning is cheap.
///
/// ```
/// use hapax_core::{InvalidReason, Reason};
///
/// let reason = Reason::new("ada", "the bank shows the payment")?;
/// assert_eq!(reason.who(), "ada");
/// assert_eq!(Reason::new("ada", " "), Err(InvalidReason::Blank { field: "why" }));
/// # Ok::<(), InvalidReason>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Reason {
    who: Arc<str>,
    why: Arc<str>,
}

impl Reason {
    /// Accepts text that is not blank, within the limits, and that a terminal shows as it is.
    pub fn new(who: &str, why: &str) -> Result<Self, InvalidReason> {
        check("who", who, NOTE_WHO_BYTES_MAX)?;
        check("why", why, NOTE_WHY_BYTES_MAX)?;
        Ok(Self { who: who.into(), why: why.into() })
    }

    /// A reason of Hapax's own, for what nobody had to decide.
    pub(crate) fn of_hapax(why: &str) -> Self {
        Self { who: "hapax".into(), why: why.into() }
    }

    /// Who does it.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Why.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.who, self.why)
    }
}

/// Why a [`Reason`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReason {
    /// There is nothing in it, or only spaces.
    #[error("{field} is empty; say it in a few words")]
    Blank {
        /// `who` or `why`.
        field: &'static str,
    },
    /// It is longer than the limit; it is refused, never cut.
    #[error("{field} is {len} bytes long; the limit is {max}")]
    TooLong {
        /// `who` or `why`.
        field: &'static str,
        /// Its length, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// It holds a control character other than a line break.
    #[error("{field} holds a control character; leave it out")]
    Control {
        /// `who` or `why`.
        field: &'static str,
    },
}

fn check(field: &'static str, text: &str, max: usize) -> Result<(), InvalidReason> {
    if text.len() > max {
        return Err(InvalidReason::TooLong { field, len: text.len(), max });
    }
    if text.chars().any(|char| char.is_control() && char != '\n') {
        return Err(InvalidReason::Control { field });
    }
    if text.trim().is_empty() { Err(InvalidReason::Blank { field }) } else { Ok(()) }
}

/// The version of notes this code writes. It reads every version up to it.
pub const FORMAT: i16 = 2;

/// A note as a store keeps it: plain columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRow {
    /// The operation's id.
    pub id: OperationId,
    /// The version of the row.
    pub format: i16,
    /// When the store took it, in microseconds.
    pub at: i64,
    /// [`Fence`] as a number.
    pub fence: i64,
    /// [`Deed`] as a number.
    pub deed: i16,
    /// [`Phase`] as a number.
    pub phase: i16,
    /// Who.
    pub who: String,
    /// Why.
    pub why: String,
}

impl NoteRow {
    /// The row that keeps this note, taken at that instant.
    pub fn seal(at: Timestamp, note: &Note) -> Self {
        Self {
            id: note.id,
            format: note.deed.format(),
            at: at.as_micros(),
            fence: note.fence.get(),
            deed: note.deed as i16,
            phase: note.phase as i16,
            who: note.reason.who().to_owned(),
            why: note.reason.why().to_owned(),
        }
    }

    /// The note kept in this row; what no version ever wrote is refused.
    pub fn open(self) -> Result<Noted, Unreadable> {
        let impossible = |column, value: &dyn ToString| Unreadable::Impossible {
            column,
            value: value.to_string(),
        };
        if self.format > FORMAT {
            return Err(Unreadable::TooNew { found: self.format.into() });
        }
        let deed = Deed::ALL.into_iter().find(|deed| *deed as i16 == self.deed);
        if deed.is_some_and(|deed| deed.format() != self.format) {
            return Err(impossible("format", &self.format));
        }
        let phase = Phase::ALL.into_iter().find(|phase| *phase as i16 == self.phase);
        let reason = Reason::new(&self.who, &self.why);
        Ok(Noted {
            at: Timestamp::from_micros(self.at),
            note: Note {
                id: self.id,
                fence: Fence::from_stored(self.fence)
                    .ok_or_else(|| impossible("fence", &self.fence))?,
                deed: deed.ok_or_else(|| impossible("deed", &self.deed))?,
                phase: phase.ok_or_else(|| impossible("phase", &self.phase))?,
                reason: reason.map_err(|refusal| impossible("reason", &refusal))?,
            },
        })
    }
}
