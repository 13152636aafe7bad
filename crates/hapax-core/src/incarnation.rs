//! Which database a store is, and whether it still has everything that it acknowledged.
//!
//! A standby that lagged and was promoted, or a backup that was restored, is a database that has forgotten its
//! last commits. A key that was claimed or finished in that part is absent there, and a retry would run it
//! a second time. Three facts in the store make that noticeable:
//!
//! - its [`Incarnation`], which it says of itself and which changes wherever commits can have been lost;
//! - a position, which every running process moves on, and which a copy from earlier has behind it;
//! - who was at work, and on which incarnation ([`ProcessMark`]).
//!
//! Whoever sees a change puts the store under [`Quarantine`]: what is found in it is answered as ever, and what
//! is not found is not run. It ends by itself once everybody who was at work before has seen to it that what it had been
//! told is there ([`may_end`]), and otherwise when a person says so.

use std::{fmt, sync::Arc};

use crate::{
    limits::{FAILOVER_LASTS_MAX, PROCESS_SILENT_MAX},
    note::Reason,
    record::{Record, StateTag},
    store::Over,
    time::Timestamp,
};

/// Which database answers, by its own account. Cloning is cheap.
///
/// Two answers of the same incarnation come from one history: what was there in the first is there in the
/// second, unless a copy of the very files was put in its place, which only its position tells.
///
/// ```
/// use hapax_core::incarnation::Incarnation;
///
/// let before = Incarnation::new("system 7412, database 5, schema 16390", 3);
/// assert_eq!(before.to_string(), "system 7412, database 5, schema 16390, timeline 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    origin: Arc<str>,
    timeline: i64,
}

impl Incarnation {
    /// The incarnation of this origin on this timeline; zero where there are none.
    pub fn new(origin: &str, timeline: i64) -> Self {
        Self { origin: origin.into(), timeline }
    }

    /// What a failover does not change.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What grows whenever a standby is promoted or a recovery ends.
    pub fn timeline(&self) -> i64 {
        self.timeline
    }

    /// Whether it is what became of the other one when a standby was promoted or a recovery ended.
    pub fn follows(&self, before: &Self) -> bool {
        self.origin == before.origin && self.timeline > before.timeline
    }
}

impl Quarantine {
    /// What was acknowledged after this may be missing; `None` where nobody can tell since when.
    pub fn missing_after(&self) -> Option<Timestamp> {
        // Where nobody was at work that is known of, nobody knows since when.
        let is_known = self.cause != LossCause::Declared && self.seen_before > Timestamp::ZERO;
        is_known.then_some(self.seen_before)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, timeline {}", self.origin, self.timeline)
    }
}

/// What a store keeps about its own past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncarnationMark {
    /// Which database it was when somebody last looked.
    pub incarnation: Incarnation,
    /// How often it was written; what was acknowledged before one of these writes is there where that write is.
    pub position: i64,
    /// The position at which the present incarnation took over.
    pub began: i64,
    /// Why absent keys are not run; `None` if they are.
    pub quarantine: Option<Quarantine>,
    /// Who last let absent keys be run again.
    pub lifted: Option<Lifted>,
}

/// Why it is not known which keys a store has forgotten, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// When that was noticed, by the store's clock.
    pub since: Timestamp,
    /// What was noticed.
    pub cause: LossCause,
    /// Which database it was before.
    pub before: Incarnation,
    /// The last sign of life, from before, that is still there.
    pub seen_before: Timestamp,
}

/// The word that absent keys may be run again: a person's, or ours once everybody vouched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifted {
    /// When they said so.
    pub at: Timestamp,
    /// Who, and why.
    pub reason: Reason,
}

/// What makes it uncertain which keys were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// A standby was promoted. Ends once everybody who was at work vouches.
    Failover = 1,
    /// The database is an older copy, or nobody can tell how much is missing.
    Restore = 2,
    /// A person said so.
    Declared = 3,
}

impl LossCause {
    /// Every cause.
    pub const ALL: [Self; 3] = [Self::Failover, Self::Restore, Self::Declared];

    /// The cause a store kept; `None` if no cause ever had this number.
    pub fn from_stored(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| *cause as i64 == number)
    }

    /// The word used in JSON and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failover => "failover",
            Self::Restore => "restore",
            Self::Declared => "declared",
        }
    }

    /// What was noticed, for people: the end of a sentence.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Failover => {
                "a standby was promoted, and not everybody who was at work vouches yet"
            }
            Self::Restore => {
                "the database is an older copy, or nobody can tell how much is missing"
            }
            Self::Declared => "somebody said so",
        }
    }
}

/// The last sign of life of a process that runs operations on a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMark {
    /// The random name of the process.
    pub process: i64,
    /// Which database it trusts to have what it was told.
    pub incarnation: Incarnation,
    /// When it was given, by the store's clock.
    pub seen_at: Timestamp,
    /// Whether its commits then waited for a standby.
    pub synchronous: bool,
    /// Whether it lived through the change to this incarnation, and everything it had been told is there.
    pub vouches: bool,
}

/// What a store says about itself, and what is kept in it.
#[derive(Debug, Clone)]
pub struct IncarnationReading {
    /// The store's clock.
    pub now: Timestamp,
    /// Which database answered.
    pub incarnation: Incarnation,
    /// Whether commits wait for a standby.
    pub synchronous: bool,
    /// What is kept; `None` where nobody ever looked.
    pub mark: Option<IncarnationMark>,
    /// What is known outside of the database of how far it had come.
    pub remembered: Remembered,
    /// Who was at work.
    pub processes: Vec<ProcessMark>,
}

/// What is known outside of a database of how far it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing is written outside of such a database: it tells by itself when it becomes another.
    NotKept,
    /// Nothing, or that it had not been used yet.
    Nothing,
    /// Another database had been used here.
    Another,
    /// The highest position that was written.
    Position(i64),
}

impl Remembered {
    fn position(self) -> Option<i64> {
        match self {
            Self::Position(position) => Some(position),
            Self::NotKept | Self::Nothing | Self::Another => None,
        }
    }
}

/// What is to be kept, if nobody was faster: one write, of all of it.
#[derive(Debug, Clone)]
pub struct IncarnationChange {
    /// The position that was read; `None` where nothing was kept. Any other, and nothing is written.
    pub expected: Option<i64>,
    /// What is kept from now on. Nothing is written by any other database than this one.
    pub mark: IncarnationMark,
    /// A sign of life.
    pub present: Option<ProcessMark>,
    /// Processes that are no more.
    pub gone: Vec<i64>,
}

/// What a process saw when it last looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncarnationSeen {
    /// Which database it was.
    pub incarnation: Incarnation,
    /// How far it was.
    pub position: i64,
    /// Where that incarnation had taken over.
    pub began: i64,
}

/// What a look at a store comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Nobody looked before: there is no past that could have been lost.
    New,
    /// It has everything that it had.
    Same,
    /// The past may have been lost, and nobody has noted it yet.
    Changed(LossCause),
    /// Somebody else has noted a change, and this process has not yet looked for what it was told.
    Noted,
    /// This process has gone on with a later one, so this one is none of its business: an old primary that came back,
    /// or was never stopped.
    Outdated,
}

/// Compares a store with what is kept in it and with what this process saw before.
pub fn compare(reading: &IncarnationReading, seen: Option<&IncarnationSeen>) -> Finding {
    if seen.is_some_and(|seen| seen.incarnation.follows(&reading.incarnation)) {
        return Finding::Outdated;
    }
    let Some(mark) = &reading.mark else {
        let was_there = seen.is_some()
            || matches!(reading.remembered, Remembered::Another | Remembered::Position(_));
        return if was_there { Finding::Changed(LossCause::Restore) } else { Finding::New };
    };
    if reading.incarnation != mark.incarnation {
        let is_promoted = reading.incarnation.follows(&mark.incarnation);
        let cause = if is_promoted { LossCause::Failover } else { LossCause::Restore };
        return Finding::Changed(cause);
    }
    let is_vouched_for = match reading.remembered {
        Remembered::NotKept => true,
        // Once it was used, something remembers it, unless it is a copy, or that was lost.
        Remembered::Nothing | Remembered::Another => false,
        Remembered::Position(remembered) => remembered <= mark.position,
    };
    if !is_vouched_for {
        return Finding::Changed(LossCause::Restore);
    }
    match seen {
        Some(seen) if seen.incarnation != mark.incarnation || seen.began != mark.began => {
            Finding::Noted
        }
        Some(seen) if mark.position < seen.position => Finding::Changed(LossCause::Restore),
        Some(_) | None => Finding::Same,
    }
}

/// The mark of a store nobody looked at before.
pub fn first_mark(reading: &IncarnationReading) -> IncarnationMark {
    let incarnation = reading.incarnation.clone();
    IncarnationMark { incarnation, position: 1, began: 0, quarantine: None, lifted: None }
}

/// The mark of a store whose past may have been lost: under quarantine, from here on.
pub fn noted(
    reading: &IncarnationReading,
    seen: Option<&IncarnationSeen>,
    cause: LossCause,
) -> IncarnationMark {
    let kept = reading.mark.as_ref();
    let survived = kept.map_or(0, |mark| mark.position);
    // Above whatever anybody remembers, so that nobody takes the new past for the old one.
    let above = [reading.remembered.position(), seen.map(|seen| seen.position), Some(survived)];
    let position = above.into_iter().flatten().max().unwrap_or(0) + 1;
    let before = kept.map(|mark| mark.incarnation.clone());
    let before = before.or_else(|| seen.map(|seen| seen.incarnation.clone()));
    let seen_before = reading.processes.iter().map(|process| process.seen_at).max();
    let quarantine = Quarantine {
        since: reading.now,
        // What was uncertain before is no more certain now.
        cause: kept.and_then(|mark| mark.quarantine.as_ref()).map_or(cause, |_| LossCause::Restore),
        before: before.unwrap_or_else(|| reading.incarnation.clone()),
        seen_before: seen_before.unwrap_or(Timestamp::ZERO),
    };
    IncarnationMark {
        incarnation: reading.incarnation.clone(),
        position,
        began: survived,
        quarantine: Some(quarantine),
        lifted: kept.and_then(|mark| mark.lifted.clone()),
    }
}

/// Whether a quarantine is over: everything that anybody was told before the change is known to be there.
///
/// Everybody who was at work must vouch, but for those whose commits waited for a standby, and for those who
/// had been silent for so long that what they were told is older than what is there. Somebody must vouch, or have
/// waited: a database in which nobody was at work may be from any time.
pub fn may_end(reading: &IncarnationReading) -> bool {
    let Some(mark) = &reading.mark else { return false };
    let Some(quarantine) = &mark.quarantine else { return false };
    if quarantine.cause != LossCause::Failover || mark.incarnation != reading.incarnation {
        return false;
    }
    // A restored backup has a new timeline too; but it is older than a failover takes.
    let has_waited = |process: &ProcessMark| {
        process.synchronous && quarantine.since <= process.seen_at.plus(FAILOVER_LASTS_MAX)
    };
    let was_gone = |process: &ProcessMark| {
        process.seen_at.plus(2 * PROCESS_SILENT_MAX) < quarantine.seen_before
    };
    let mut from_before =
        reading.processes.iter().filter(|process| process.incarnation != mark.incarnation);
    let is_witnessed = reading.processes.iter().any(|process| {
        let is_here = process.incarnation == mark.incarnation;
        if is_here { process.vouches } else { has_waited(process) }
    });
    is_witnessed && from_before.all(|process| has_waited(process) || was_gone(process))
}

/// The mark of a store whose quarantine [may end](may_end), as it is kept from now on.
///
/// Says so, because whoever looks later must be able to tell that a loss was noticed.
pub fn ended(reading: &IncarnationReading, next: IncarnationMark) -> IncarnationMark {
    let reason =
        Reason::of_hapax("everybody who was at work before the change vouched or was waited for");
    IncarnationMark { quarantine: None, lifted: Some(Lifted { at: reading.now, reason }), ..next }
}

/// What is missing of something that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nothing, or what is there came later.
    Nothing,
    /// The claim: it is to be made over this, and ended if it was.
    Claim(Over),
    /// The end of a claim that is there.
    End,
}

/// Compares what was acknowledged with what is there, where the store's clock says `now`.
pub fn missing(acknowledged: &Record, found: Option<&Record>, now: Timestamp) -> Missing {
    let is_finished = acknowledged.tag().is_terminal();
    if is_finished && acknowledged.forget_at() <= now {
        return Missing::Nothing;
    }
    let Some(found) = found else { return Missing::Claim(Over::Nothing) };
    if found.fence < acknowledged.fence {
        let stamp = found.stamp();
        let over =
            if found.tag().is_terminal() { Over::Spent(stamp) } else { Over::Abandoned(stamp) };
        return Missing::Claim(over);
    }
    let is_same_attempt = found.fence == acknowledged.fence && found.owner == acknowledged.owner;
    let is_open = !found.tag().is_terminal();
    let is_behind = is_finished
        || (acknowledged.tag() == StateTag::InDoubt && found.tag() != StateTag::InDoubt);
    if is_same_attempt && is_open && is_behind { Missing::End } else { Missing::Nothing }
}
