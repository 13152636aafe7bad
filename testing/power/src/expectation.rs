//! What must be found after the loss of power, by what had been told before it.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use hapax_core::OperationId;
use hapax_sqlite::Durability;

use crate::{
    error::PowerError,
    log::DiskCall,
    plan::{Books, KeyState, PlannedTask, TaskAction, WorkPlan},
};

/// Of keys that nothing happens to so many are looked at each time, by chance.
const SAMPLE: usize = 400;

/// What was acknowledged so far, and what is under way.
#[derive(Debug, Clone)]
pub struct Expectation<'p> {
    tasks: BTreeMap<usize, &'p PlannedTask>,
    books: Books,
    under_way: BTreeMap<usize, &'p PlannedTask>,
    /// The keys that tasks touched so far, by name; a purge touches what it finds.
    touched: BTreeSet<OperationId>,
    /// Those whose owner the database draws, so that nobody else knows it.
    once: BTreeSet<OperationId>,
    before: Vec<OperationId>,
    /// What was acknowledged earlier and is no longer so; empty where every acknowledgement is a promise.
    earlier: BTreeMap<OperationId, Vec<KeyState>>,
    promise: Durability,
    /// The salt that was told first.
    salt: Option<String>,
    heard: usize,
}

impl<'p> Expectation<'p> {
    /// Before anything was told, by a store that promises this.
    pub fn new(plan: &'p WorkPlan, promise: Durability) -> Self {
        Self {
            tasks: plan.tasks().map(|task| (task.number, task)).collect(),
            books: plan.before.clone(),
            under_way: BTreeMap::new(),
            touched: BTreeSet::new(),
            once: BTreeSet::new(),
            before: plan.before.ids().collect(),
            earlier: BTreeMap::new(),
            promise,
            salt: None,
            heard: 0,
        }
    }

    /// Takes in what is told by this call, if it tells something.
    pub fn hear(&mut self, call: &DiskCall) -> Result<(), PowerError> {
        let DiskCall::Told(line) = call else { return Ok(()) };
        self.heard += 1;
        let unheard = || PowerError::Log(format!("nobody tells `{line}`"));
        let (word, rest) = line.split_once(' ').ok_or_else(unheard)?;
        if word == "opened" {
            let salt = self.salt.get_or_insert_with(|| rest.to_owned());
            return if salt == rest { Ok(()) } else { Err(unheard()) };
        }
        let number = rest.parse().map_err(|_| unheard())?;
        let task = *self.tasks.get(&number).ok_or_else(unheard)?;
        match word {
            "begin" => {
                let after = self.books.after(task).ok_or_else(unheard)?;
                self.touched.extend(after.iter().map(|(id, _)| *id).take(SAMPLE));
                if let TaskAction::Once(once) = &task.action {
                    self.once.insert(once.operation.id());
                }
                self.under_way.insert(number, task);
                Ok(())
            }
            "done" if self.under_way.remove(&number).is_some() => {
                self.remember(task);
                if self.books.enter(task) { Ok(()) } else { Err(unheard()) }
            }
            _ => Err(unheard()),
        }
    }

    /// What this task changes may come back, where the last commits may be lost.
    fn remember(&mut self, task: &PlannedTask) {
        if self.promise == Durability::Normal {
            for (id, _) in self.books.after(task).unwrap_or_default() {
                self.earlier.entry(id).or_default().push(self.books.state(id));
            }
        }
    }

    /// How often something was told: what is expected changes only then.
    pub fn heard(&self) -> usize {
        self.heard
    }

    /// The salt that was told.
    pub fn salt(&self) -> Option<&str> {
        self.salt.as_deref()
    }

    /// The salt the store must have; `None` if it may be a new one.
    pub fn promised_salt(&self) -> Option<&str> {
        self.salt().filter(|_| self.promise == Durability::Full)
    }

    /// What is under way, in words.
    pub fn under_way(&self) -> BTreeSet<&'static str> {
        self.under_way.values().map(|task| task.action.name()).collect()
    }

    /// Whether the owner of this key is its database's secret.
    pub fn is_owner_unknown(&self, id: OperationId) -> bool {
        self.once.contains(&id)
    }

    /// How many keys there may be.
    pub fn keys(&self) -> usize {
        self.before.len() + self.touched.len()
    }

    /// What may be found under each key that is looked at: what was acknowledged, or that with what is
    /// under way.
    pub fn legal(
        &self,
        chance: &mut Rng,
    ) -> Result<BTreeMap<OperationId, Vec<KeyState>>, PowerError> {
        let mut ids = self.touched.clone();
        ids.extend(chance.choose_multiple(self.before.iter().copied(), SAMPLE));
        let known = |id| {
            let mut states = vec![self.books.state(id)];
            states.extend(self.earlier.get(&id).into_iter().flatten().cloned());
            (id, states)
        };
        let mut legal: BTreeMap<_, _> = ids.into_iter().map(known).collect();
        for (number, task) in &self.under_way {
            let unplanned = || PowerError::Log(format!("task {number} cannot be under way"));
            for (id, after) in self.books.after(task).ok_or_else(unplanned)? {
                if let Some(states) = legal.get_mut(&id) {
                    states.push(after);
                }
            }
        }
        Ok(legal)
    }
}
