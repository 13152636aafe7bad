//! What tasks leave behind, by the rules of the core.

use std::collections::BTreeMap;

use hapax_core::{
    Arrival, Attempt, AttemptEnd, Decision, Noted, OperationId, Owner, Record, RunMode, StateTag,
    StoredStep, Timestamp, apply, decide, settle,
    store::{Over, Settlement, Write},
};

use super::{OnceTask, PlannedTask, TaskAction, fingerprint};

/// What is known about each key.
#[derive(Debug, Clone, Default)]
pub struct Books {
    keys: BTreeMap<OperationId, KeyState>,
}

/// Everything that is kept under one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyState {
    /// Its record.
    pub record: Option<Record>,
    /// The steps of its present life.
    pub steps: Vec<StoredStep>,
    /// The notes on it.
    pub notes: Vec<Noted>,
    /// Whether its effect is in the table beside the records.
    pub has_effect: bool,
}

impl Books {
    /// What is kept under this key.
    pub fn state(&self, id: OperationId) -> KeyState {
        self.keys.get(&id).cloned().unwrap_or_default()
    }

    /// The keys that something was kept under.
    pub fn ids(&self) -> impl Iterator<Item = OperationId> {
        self.keys.keys().copied()
    }

    /// What each key that this task touches holds after it, and only after it. `None` if it has no say over
    /// what is there.
    pub fn after(&self, task: &PlannedTask) -> Option<Vec<(OperationId, KeyState)>> {
        let now = task.now;
        match &task.action {
            TaskAction::Commit(batch) => {
                batch.iter().map(|write| self.after_write(now, write)).collect()
            }
            TaskAction::Withdraw(attempt) => self.after_withdrawal(attempt).map(|gone| vec![gone]),
            TaskAction::Note(note) => {
                let mut state = self.state(note.id);
                state.notes.push(Noted { at: now, note: note.clone() });
                Some(vec![(note.id, state)])
            }
            TaskAction::Purge => Some(self.after_purge(now)),
            TaskAction::Once(once) => self.after_once(now, once).map(|done| vec![done]),
            TaskAction::Checkpoint(_) => Some(Vec::new()),
        }
    }

    /// Enters what this task leaves behind; `false` if it has no say over what is there.
    pub fn enter(&mut self, task: &PlannedTask) -> bool {
        let Some(after) = self.after(task) else { return false };
        self.keys.extend(after);
        true
    }

    fn after_write(&self, now: Timestamp, write: &Write) -> Option<(OperationId, KeyState)> {
        let mut state = self.state(write.id());
        let record = apply::write(now, state.record.as_ref(), write)?;
        match write {
            Write::Claim(claim) => match claim.over {
                Over::Nothing | Over::Spent(_) => state.steps.clear(),
                Over::Abandoned(_) => {}
            },
            Write::Step(keep) => state.steps.push(StoredStep { at: now, step: keep.step.clone() }),
            Write::Settle(_) | Write::Renew(_) => {}
        }
        state.record = Some(record);
        Some((write.id(), state))
    }

    fn after_withdrawal(&self, attempt: &Attempt) -> Option<(OperationId, KeyState)> {
        let state = self.state(attempt.id);
        apply::withdraws(state.record.as_ref(), attempt)
            .then(|| (attempt.id, KeyState { record: None, steps: Vec::new(), ..state }))
    }

    fn after_purge(&self, now: Timestamp) -> Vec<(OperationId, KeyState)> {
        let purged = |(id, state): (&OperationId, &KeyState)| {
            let mut state = state.clone();
            match apply::purge(now, state.record.as_ref()?) {
                apply::Purge::Keep => return None,
                apply::Purge::Delete => (state.record, state.steps) = (None, Vec::new()),
                apply::Purge::Bury(record) => {
                    (state.record, state.steps) = (Some(record), Vec::new());
                }
                apply::Purge::TimeOut(record) => state.record = Some(record),
            }
            Some((*id, state))
        };
        self.keys.iter().filter_map(purged).collect()
    }

    fn after_once(&self, now: Timestamp, once: &OnceTask) -> Option<(OperationId, KeyState)> {
        let id = once.operation.id();
        let arrival = Arrival {
            operation: once.operation.clone(),
            fingerprint: fingerprint(),
            owner: Owner(1),
            mode: RunMode::Run { request: None },
        };
        let found = self.state(id);
        let policy = OnceTask::policy();
        let decision = decide(now, &arrival, found.record.as_ref(), &policy);
        let Decision::Execute(claim) = decision else { return None };
        let claimed = apply::claim(now, found.record.as_ref(), &claim)?;
        let attempt = Attempt { id, fence: claimed.fence, owner: claimed.owner };
        let settled = settle(&attempt, AttemptEnd::Answered(once.answer.clone()), &policy);
        let state = match &settled.to {
            Settlement::Completed(_) | Settlement::Failed(_) => {
                let record = apply::settle(now, Some(&claimed), &settled)?;
                let has_effect = record.tag() == StateTag::Completed;
                KeyState { record: Some(record), has_effect, ..found }
            }
            Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => found,
        };
        Some((id, state))
    }
}
