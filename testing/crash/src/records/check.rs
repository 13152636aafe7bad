//! What must be true of every key after the crashes, once everything has been recovered.

use std::collections::{BTreeMap, BTreeSet};

use hapax_core::StateTag;

use super::{
    journal::JournalLine,
    work::{Work, WorkKind},
};

/// Everything known about some operations after the last victim has ended.
#[derive(Debug, Clone, Default)]
pub struct RecordFacts {
    /// The operations.
    pub works: Vec<Work>,
    /// What victims began and what their clients were told.
    pub journal: Vec<JournalLine>,
    /// The names of the effects that happened.
    pub effects: BTreeMap<Work, Vec<String>>,
    /// What is stored.
    pub kept: BTreeMap<Work, KeptRecord>,
}

/// What is stored about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRecord {
    /// Its state.
    pub state: StateTag,
    /// The effect its outcome tells of, if it has one.
    pub effect: Option<String>,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordViolation {
    /// The effect happened more than once.
    #[error("{work}: {count} effects")]
    Effects {
        /// Which operation.
        work: Work,
        /// How many.
        count: usize,
    },
    /// A client was told of an effect that did not happen.
    #[error("{work}: a client was told of effect {told}, which never happened")]
    ToldOfNothing {
        /// Which operation.
        work: Work,
        /// What it was told.
        told: String,
    },
    /// Two clients were told different things.
    #[error("{work}: one client was told {first}, another {other}")]
    ToldDifferently {
        /// Which operation.
        work: Work,
        /// What one was told.
        first: String,
        /// What another was told.
        other: String,
    },
    /// A client was told what is not stored.
    #[error("{work}: a client was told {told}, and what is stored is {kept:?}")]
    ToldButNotKept {
        /// Which operation.
        work: Work,
        /// What it was told.
        told: String,
        /// What is stored.
        kept: Option<KeptRecord>,
    },
    /// What is stored tells of another effect than the one that happened.
    #[error("{work}: stored as completed with {kept:?}, and what happened is {effects:?}")]
    KeptOtherwise {
        /// Which operation.
        work: Work,
        /// The effect that is stored.
        kept: Option<String>,
        /// The effects that happened.
        effects: Vec<String>,
    },
    /// It has no end, although everybody had the time to recover it.
    #[error("{work}: left {state:?}")]
    NoEnd {
        /// Which operation.
        work: Work,
        /// Its state, if it is stored at all.
        state: Option<StateTag>,
    },
    /// Two attempts had the same number.
    #[error("{work}: two attempts were given fence {fence}")]
    SameFence {
        /// Which operation.
        work: Work,
        /// The number.
        fence: i64,
    },
    /// It was to be held when in doubt, and was attempted again.
    #[error("{work}: attempted {attempts} times, although it is held when in doubt")]
    NotHeld {
        /// Which operation.
        work: Work,
        /// How often.
        attempts: usize,
    },
    /// The engine said what it must never say.
    #[error("{work}: the engine said {what}")]
    Absurd {
        /// Which operation.
        work: Work,
        /// What it said.
        what: String,
    },
    /// What the crashes left in the store cannot be read.
    #[error("the store cannot be read: {how}")]
    Unreadable {
        /// What it said.
        how: String,
    },
    /// A victim ended in a way nobody asked for.
    #[error("a victim failed: {how}")]
    Failed {
        /// How it ended.
        how: String,
    },
}

/// Every broken promise in these facts.
pub fn check(facts: &RecordFacts) -> Vec<RecordViolation> {
    let mut violations = Vec::new();
    for &work in &facts.works {
        let about = About::new(work, facts);
        about.check_effects(&mut violations);
        about.check_told(&mut violations);
        about.check_kept(&mut violations);
        about.check_attempts(&mut violations);
    }
    violations
}

/// The facts about one operation.
struct About<'a> {
    work: Work,
    effects: &'a [String],
    kept: Option<&'a KeptRecord>,
    told: BTreeSet<(u16, &'a str)>,
    fences: Vec<i64>,
    absurd: Vec<&'a str>,
}

impl<'a> About<'a> {
    fn new(work: Work, facts: &'a RecordFacts) -> Self {
        let mut about = Self {
            work,
            effects: facts.effects.get(&work).map_or(&[], Vec::as_slice),
            kept: facts.kept.get(&work),
            told: BTreeSet::new(),
            fences: Vec::new(),
            absurd: Vec::new(),
        };
        for entry in &facts.journal {
            match entry {
                JournalLine::Told { work: of, status, effect } if *of == work => {
                    about.told.insert((*status, effect));
                }
                JournalLine::Attempt { work: of, fence, .. } if *of == work => {
                    about.fences.push(*fence)
                }
                JournalLine::Absurd { work: of, what } if *of == work => about.absurd.push(what),
                JournalLine::Told { .. }
                | JournalLine::Attempt { .. }
                | JournalLine::Absurd { .. }
                | JournalLine::Doubted { .. } => {}
            }
        }
        about
    }

    fn check_effects(&self, violations: &mut Vec<RecordViolation>) {
        let (work, count) = (self.work, self.effects.len());
        if count > 1 {
            violations.push(RecordViolation::Effects { work, count });
        }
    }

    fn check_told(&self, violations: &mut Vec<RecordViolation>) {
        let work = self.work;
        for what in &self.absurd {
            violations.push(RecordViolation::Absurd { work, what: (*what).to_owned() });
        }
        let show = |(status, effect): &(u16, &str)| format!("{status} {effect}");
        let mut told = self.told.iter();
        let Some(first) = told.next() else { return };
        for other in told {
            let (first, other) = (show(first), show(other));
            violations.push(RecordViolation::ToldDifferently { work, first, other });
        }
        if !self.effects.iter().any(|effect| effect == first.1) {
            violations.push(RecordViolation::ToldOfNothing { work, told: show(first) });
        }
        let is_kept = |kept: &&KeptRecord| {
            kept.state == StateTag::Completed && kept.effect.as_deref() == Some(first.1)
        };
        if self.kept.filter(is_kept).is_none() {
            let (told, kept) = (show(first), self.kept.cloned());
            violations.push(RecordViolation::ToldButNotKept { work, told, kept });
        }
    }

    fn check_kept(&self, violations: &mut Vec<RecordViolation>) {
        let (work, state) = (self.work, self.kept.map(|kept| kept.state));
        match (self.kept, self.work.kind) {
            (Some(KeptRecord { state: StateTag::Completed, effect }), _) => {
                if effect.as_ref() != self.effects.first() || effect.is_none() {
                    let (kept, effects) = (effect.clone(), self.effects.to_vec());
                    violations.push(RecordViolation::KeptOtherwise { work, kept, effects });
                }
            }
            (Some(KeptRecord { state: StateTag::InDoubt, .. }), WorkKind::Hold) => {}
            (_, WorkKind::Hold | WorkKind::Resend | WorkKind::Probe | WorkKind::Queue) => {
                violations.push(RecordViolation::NoEnd { work, state });
            }
        }
    }

    fn check_attempts(&self, violations: &mut Vec<RecordViolation>) {
        let work = self.work;
        let mut seen = BTreeSet::new();
        for &fence in &self.fences {
            if !seen.insert(fence) {
                violations.push(RecordViolation::SameFence { work, fence });
            }
        }
        if work.kind == WorkKind::Hold && self.fences.len() > 1 {
            violations.push(RecordViolation::NotHeld { work, attempts: self.fences.len() });
        }
    }
}
