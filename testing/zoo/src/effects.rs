//! What happened, by its own account: what is asked when somebody counts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// One payment, refund or report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effect {
    /// What it is known by.
    pub(crate) id: String,
    /// Which it is: the first part of its path.
    pub(crate) kind: String,
    /// What the client called it.
    #[serde(rename = "ref")]
    pub(crate) marker: String,
    /// How much.
    pub(crate) amount: u64,
}

/// All effects, in the order they had.
#[derive(Debug, Default)]
pub(crate) struct EffectLedger {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    effects: Vec<Effect>,
    numbered: u64,
}

impl EffectLedger {
    pub(crate) fn add(&self, kind: &str, marker: &str, amount: u64) -> Effect {
        let mut inner = self.inner();
        inner.numbered += 1;
        let id = format!("{}_{:08}", kind.trim_end_matches('s'), inner.numbered);
        let effect = Effect { id, kind: kind.into(), marker: marker.into(), amount };
        inner.effects.push(effect.clone());
        effect
    }

    pub(crate) fn restore(&self, effect: Effect) {
        let mut inner = self.inner();
        inner.numbered += 1;
        inner.effects.push(effect);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.inner().effects.retain(|effect| effect.id != id);
    }

    pub(crate) fn of(&self, kind: &str, marker: Option<&str>) -> Vec<Effect> {
        let asked = |effect: &&Effect| {
            effect.kind == kind && marker.is_none_or(|marker| effect.marker == marker)
        };
        self.inner().effects.iter().filter(asked).cloned().collect()
    }

    pub(crate) fn one(&self, kind: &str, id: &str) -> Option<Effect> {
        self.of(kind, None).into_iter().find(|effect| effect.id == id)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
