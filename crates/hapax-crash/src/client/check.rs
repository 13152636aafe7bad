//! What must be true of every operation afterwards.

use std::{collections::BTreeMap, fmt};

use hapax_client::Conclusion;

use super::{books::Seen, told::Told};

/// What is known after an episode, from the three who know: the server, the journal, the callers.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// What the server saw and did, by operation.
    pub seen: BTreeMap<String, Seen>,
    /// What the journal says, by operation.
    pub kept: BTreeMap<String, Kept>,
    /// What callers were told, also by processes that died later.
    pub told: Vec<Told>,
}

/// What the journal says of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The key.
    pub key: String,
    /// What it came to; `None` while it is pending.
    pub conclusion: Option<Conclusion>,
    /// The text of the answer; empty without one.
    pub answer: String,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// It happened more than once.
    Effects {
        /// The operation.
        name: String,
        /// How often.
        count: usize,
    },
    /// It was sent, or written down, with different keys.
    KeyChanged {
        /// The operation.
        name: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// It was sent before it was in the journal.
    SentFirst {
        /// The operation.
        name: String,
    },
    /// The journal says something else than the server.
    KeptOtherwise {
        /// The operation.
        name: String,
        /// What the journal says.
        kept: Kept,
        /// What happened.
        effects: Vec<String>,
    },
    /// A caller was told something else than what happened.
    ToldOtherwise {
        /// What it was told.
        told: Told,
        /// What happened.
        effects: Vec<String>,
    },
    /// It arrived, and the journal has forgotten it.
    Forgotten {
        /// The operation.
        name: String,
    },
    /// It is still pending although somebody has resumed everything.
    LeftPending {
        /// The operation.
        name: String,
    },
    /// It was asked for again, nothing went wrong, and there is still no answer.
    Unanswered {
        /// The operation.
        name: String,
        /// What the journal says.
        conclusion: Conclusion,
    },
    /// A process failed that nobody has killed.
    Failed {
        /// What it said.
        how: String,
    },
}

/// How far an episode has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Everything pending was resumed.
    Resumed,
    /// What was left without an answer was asked for again, and nothing went wrong.
    AskedAgain,
}

/// How the names of operations begin that are forgotten on purpose, once they are over.
pub const ERRAND: &str = "errand-";

/// What is wrong, if anything.
pub fn check(facts: &Facts, stage: Stage) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, seen) in &facts.seen {
        violations.extend(seen_wrong(name, seen, facts.kept.get(name)));
    }
    for (name, kept) in &facts.kept {
        violations.extend(kept_wrong(name, kept, facts.effects(name), stage));
    }
    for told in &facts.told {
        let effects = facts.effects(&told.name);
        if !agrees(Some(told.conclusion), &told.answer, effects, Tense::Then) {
            let (told, effects) = (told.clone(), effects.to_vec());
            violations.push(Violation::ToldOtherwise { told, effects });
        }
    }
    violations
}

impl Facts {
    fn effects(&self, name: &str) -> &[String] {
        self.seen.get(name).map_or(&[], |seen| &seen.effects)
    }
}

fn seen_wrong(name: &str, seen: &Seen, kept: Option<&Kept>) -> Vec<Violation> {
    let name = || name.to_owned();
    let mut violations = Vec::new();
    if seen.effects.len() > 1 {
        violations.push(Violation::Effects { name: name(), count: seen.effects.len() });
    }
    let mut keys = seen.keys.clone();
    keys.extend(kept.map(|kept| kept.key.clone()));
    if keys.len() > 1 {
        violations.push(Violation::KeyChanged { name: name(), keys: keys.into_iter().collect() });
    }
    // What is forgotten once it is over may still arrive, late.
    if !name().starts_with(ERRAND) {
        violations.extend((seen.unjournalled > 0).then(|| Violation::SentFirst { name: name() }));
        violations.extend(kept.is_none().then(|| Violation::Forgotten { name: name() }));
    }
    violations
}

fn kept_wrong(name: &str, kept: &Kept, effects: &[String], stage: Stage) -> Option<Violation> {
    let name = name.to_owned();
    match (kept.conclusion, stage) {
        (None, _) => Some(Violation::LeftPending { name }),
        (Some(conclusion @ (Conclusion::Unknown | Conclusion::GaveUp)), Stage::AskedAgain) => {
            Some(Violation::Unanswered { name, conclusion })
        }
        (Some(_), _) => (!agrees(kept.conclusion, &kept.answer, effects, Tense::Now)).then(|| {
            Violation::KeptOtherwise { name, kept: kept.clone(), effects: effects.to_vec() }
        }),
    }
}

/// Whether a word is about now, or about when it was said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tense {
    Now,
    Then,
}

/// Whether a word fits what happened. What was given up may have been asked for again since.
fn agrees(conclusion: Option<Conclusion>, answer: &str, effects: &[String], tense: Tense) -> bool {
    match conclusion {
        Some(Conclusion::Done) => effects.iter().any(|effect| effect == answer),
        Some(Conclusion::Refused) => effects.is_empty(),
        Some(Conclusion::GaveUp) => effects.is_empty() || tense == Tense::Then,
        Some(Conclusion::Unknown) | None => true,
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Effects { name, count } => write!(f, "{name} happened {count} times"),
            Self::KeyChanged { name, keys } => {
                write!(f, "{name} had the keys {}", keys.join(", "))
            }
            Self::SentFirst { name } => write!(f, "{name} was sent before it was in the journal"),
            Self::KeptOtherwise { name, kept, effects } => {
                write!(f, "{name} is {kept:?} in the journal, and the server did {effects:?}")
            }
            Self::ToldOtherwise { told, effects } => {
                write!(f, "a caller was told {told:?}, and the server did {effects:?}")
            }
            Self::Forgotten { name } => write!(f, "{name} was sent, and is not in the journal"),
            Self::LeftPending { name } => write!(f, "{name} is pending for ever"),
            Self::Unanswered { name, conclusion } => {
                write!(f, "{name} was asked for again, and is {conclusion}")
            }
            Self::Failed { how } => write!(f, "a process failed: {how}"),
        }
    }
}
