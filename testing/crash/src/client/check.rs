//! What must be true of every operation afterwards.

use std::collections::BTreeMap;

use hapax_client::Conclusion;

use super::{books::SeenCall, told::Told};

/// What is known after an episode, from the three who know: the server, the journal, the callers.
#[derive(Debug, Clone, Default)]
pub struct ClientFacts {
    /// What the server saw and did, by operation.
    pub seen: BTreeMap<String, SeenCall>,
    /// What the journal says, by operation.
    pub kept: BTreeMap<String, KeptCall>,
    /// What callers were told, also by processes that died later.
    pub told: Vec<Told>,
}

/// What the journal says of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCall {
    /// The key.
    pub key: String,
    /// What it came to; `None` while it is pending.
    pub conclusion: Option<Conclusion>,
    /// The text of the answer; empty without one.
    pub answer: String,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientViolation {
    /// It happened more than once.
    #[error("{name} happened {count} times")]
    Effects {
        /// The operation.
        name: String,
        /// How often.
        count: usize,
    },
    /// It was sent, or written down, with different keys.
    #[error("{name} had the keys {}", keys.join(", "))]
    KeyChanged {
        /// The operation.
        name: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// It was sent before it was in the journal.
    #[error("{name} was sent before it was in the journal")]
    SentFirst {
        /// The operation.
        name: String,
    },
    /// The journal says something else than the server.
    #[error("{name} is {kept:?} in the journal, and the server did {effects:?}")]
    KeptOtherwise {
        /// The operation.
        name: String,
        /// What the journal says.
        kept: KeptCall,
        /// What happened.
        effects: Vec<String>,
    },
    /// A caller was told something else than what happened.
    #[error("a caller was told {told:?}, and the server did {effects:?}")]
    ToldOtherwise {
        /// What it was told.
        told: Told,
        /// What happened.
        effects: Vec<String>,
    },
    /// It arrived, and the journal has forgotten it.
    #[error("{name} was sent, and is not in the journal")]
    Forgotten {
        /// The operation.
        name: String,
    },
    /// It is still pending although somebody has resumed everything.
    #[error("{name} is pending for ever")]
    LeftPending {
        /// The operation.
        name: String,
    },
    /// It was asked for again, nothing went wrong, and there is still no answer.
    #[error("{name} was asked for again, and is {conclusion}")]
    Unanswered {
        /// The operation.
        name: String,
        /// What the journal says.
        conclusion: Conclusion,
    },
    /// A process failed that nobody has killed.
    #[error("a process failed: {how}")]
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
pub fn check(facts: &ClientFacts, stage: Stage) -> Vec<ClientViolation> {
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
            violations.push(ClientViolation::ToldOtherwise { told, effects });
        }
    }
    violations
}

impl ClientFacts {
    fn effects(&self, name: &str) -> &[String] {
        self.seen.get(name).map_or(&[], |seen| &seen.effects)
    }
}

fn seen_wrong(name: &str, seen: &SeenCall, kept: Option<&KeptCall>) -> Vec<ClientViolation> {
    let name = || name.to_owned();
    let mut violations = Vec::new();
    if seen.effects.len() > 1 {
        violations.push(ClientViolation::Effects { name: name(), count: seen.effects.len() });
    }
    let mut keys = seen.keys.clone();
    keys.extend(kept.map(|kept| kept.key.clone()));
    if keys.len() > 1 {
        violations
            .push(ClientViolation::KeyChanged { name: name(), keys: keys.into_iter().collect() });
    }
    // What is forgotten once it is over may still arrive, late.
    if !name().starts_with(ERRAND) {
        violations
            .extend((seen.unjournalled > 0).then(|| ClientViolation::SentFirst { name: name() }));
        violations.extend(kept.is_none().then(|| ClientViolation::Forgotten { name: name() }));
    }
    violations
}

fn kept_wrong(
    name: &str,
    kept: &KeptCall,
    effects: &[String],
    stage: Stage,
) -> Option<ClientViolation> {
    let name = name.to_owned();
    match (kept.conclusion, stage) {
        (None, _) => Some(ClientViolation::LeftPending { name }),
        (Some(conclusion @ (Conclusion::Unknown | Conclusion::GaveUp)), Stage::AskedAgain) => {
            Some(ClientViolation::Unanswered { name, conclusion })
        }
        (Some(_), _) => (!agrees(kept.conclusion, &kept.answer, effects, Tense::Now)).then(|| {
            ClientViolation::KeptOtherwise { name, kept: kept.clone(), effects: effects.to_vec() }
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
