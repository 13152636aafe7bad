//! What the server saw and did, kept in a process that nobody kills.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// What the server saw and did.
#[derive(Debug, Default)]
pub struct ServerBooks {
    operations: Mutex<BTreeMap<String, SeenCall>>,
    in_hand: watch::Sender<usize>,
}

/// What the server knows of one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenCall {
    /// The keys it came with.
    pub keys: BTreeSet<String>,
    /// How often it came.
    pub arrivals: u64,
    /// How often it came while the journal did not hold it with that key.
    pub unjournalled: u64,
    /// What was done for it, each time.
    pub effects: Vec<String>,
    /// How often a duplicate was answered without doing anything.
    pub replays: u64,
    /// How often something was done to it on its way.
    pub mishaps: u64,
}

impl ServerBooks {
    /// Notes that an operation arrived; says for which time.
    pub(super) fn arrived(&self, name: &str, key: String, journalled: bool) -> u64 {
        self.change(name, |seen| {
            seen.keys.insert(key);
            seen.arrivals += 1;
            seen.unjournalled += u64::from(!journalled);
            seen.arrivals
        })
    }

    /// Does what the operation asks for; says what that was.
    pub(super) fn effect(&self, name: &str) -> String {
        self.change(name, |seen| {
            let effect = format!("effect {} of {name}", seen.effects.len() + 1);
            seen.effects.push(effect.clone());
            effect
        })
    }

    pub(super) fn change<T>(&self, name: &str, change: impl FnOnce(&mut SeenCall) -> T) -> T {
        change(self.lock().entry(name.to_owned()).or_default())
    }

    /// Counts a request as worked on until this is dropped.
    pub(super) fn take_in_hand(&self) -> InHand<'_> {
        self.in_hand.send_modify(|count| *count += 1);
        InHand(self)
    }

    /// Waits until nothing is worked on.
    pub async fn idle(&self) {
        // It cannot fail: the sender is here.
        let _ = self.in_hand.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Everything, by operation.
    pub fn read(&self) -> BTreeMap<String, SeenCall> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SeenCall>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is worked on.
#[derive(Debug)]
pub(super) struct InHand<'a>(&'a ServerBooks);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.in_hand.send_modify(|count| *count -= 1);
    }
}
