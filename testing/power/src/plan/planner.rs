//! Draws plans.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use fastrand::Rng;
use hapax_core::{
    AnswerMeaning, Attempt, AttemptAnswer, Deed, Doubt, Fence, Note, OperationId, Outcome, Owner,
    Phase, Reason, Record, Recovery, State, Step, StepName, Timestamp, apply,
    store::{By, Claim, Entry, KeepStep, Over, Renew, Settle, Settlement, Write},
};

use super::{
    Books, OnceTask, PlannedPhase, PlannedTask, TaskAction, WorkPlan, Workload, fingerprint,
    operation, outcome,
};
use crate::error::PowerError;

/// When it all begins, by the store's clock, in microseconds.
const BEGIN_US: i64 = 1_800_000_000_000_000;
const LEASE: Duration = Duration::from_secs(60);
/// From one phase to the next.
const PHASE: Duration = Duration::from_secs(2 * 60 * 60);
/// Gone by the next phase.
const SHORT: Duration = Duration::from_secs(60 * 60);
/// Kept to the end.
const LONG: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) fn draw(workload: Workload, seed: u64) -> Result<WorkPlan, PowerError> {
    let mut planner = Planner::new(seed);
    let filling = planner.fill(workload.filled())?;
    let before = planner.books.clone();
    let phases = match workload {
        Workload::Opening => vec![planner.phase(&Shape { threads: 0, ..MIXED })?],
        Workload::Mixed => planner.phases(5, &MIXED)?,
        Workload::Checkpoints => {
            let (body_bytes, checkpoints) = (100 << 10..200 << 10, Checkpoints::Automatic);
            let shape = Shape { threads: 3, tasks: 50, body_bytes, checkpoints, ..MIXED };
            planner.phases(2, &shape)?
        }
        Workload::ManyKeys => {
            planner.phases(2, &Shape { threads: 3, tasks: 40, batch: 16, ..MIXED })?
        }
        Workload::Processes => vec![planner.phase(&Shape { tasks: 20, ..MIXED })?],
    };
    Ok(WorkPlan { filling, before, phases })
}

/// How many of the keys that a store is filled with are gone by the next phase.
const FILLED_SHORT: usize = 1500;

/// How many of them are written in one batch.
const FILLED_AT_ONCE: usize = 500;

/// What is done with one of the keys that a store is filled with.
fn filling(number: usize) -> Result<[Write; 2], PowerError> {
    let (over, fence, owner) = (Over::Nothing, Fence::FIRST, Owner(1));
    let retention = if number < FILLED_SHORT { SHORT } else { LONG };
    let entry = Entry::Run { lease: LEASE, request: None };
    let claim =
        claim(&format!("filled-{number}"), Claiming { over, fence, owner, retention, entry })?;
    let (id, by) = (claim.operation.id(), By::Owner { fence, owner });
    let to = Settlement::Completed(outcome(format!("outcome {number}"))?);
    Ok([Write::Claim(claim), Write::Settle(Settle { id, by, to, keep: LEASE })])
}

/// How large a phase is, and of what.
#[derive(Debug, Clone)]
struct Shape {
    threads: usize,
    tasks: usize,
    /// The most writes in a batch.
    batch: usize,
    body_bytes: Range<usize>,
    checkpoints: Checkpoints,
}

/// Who copies the log into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    /// Whoever finds it long enough.
    Automatic,
    /// Others, too, whenever they like.
    ByOthers,
}

const MIXED: Shape = Shape {
    threads: 4,
    tasks: 12,
    batch: 4,
    body_bytes: 0..6000,
    checkpoints: Checkpoints::ByOthers,
};

struct Planner {
    chance: Rng,
    books: Books,
    now: Timestamp,
    tasks: usize,
    keys: usize,
    /// The keys of each thread.
    own: Vec<Vec<OperationId>>,
}

impl Planner {
    fn new(seed: u64) -> Self {
        let now = Timestamp::from_micros(BEGIN_US);
        let chance = Rng::with_seed(seed);
        Self { chance, books: Books::default(), now, tasks: 0, keys: 0, own: Vec::new() }
    }

    fn fill(&mut self, count: usize) -> Result<Vec<PlannedTask>, PowerError> {
        let mut tasks = Vec::new();
        for first in (0..count).step_by(FILLED_AT_ONCE) {
            let (mut claims, mut ends) = (Vec::new(), Vec::new());
            for number in first..count.min(first + FILLED_AT_ONCE) {
                let [claim, end] = filling(number)?;
                claims.push(claim);
                ends.push(end);
            }
            tasks.push(self.task(TaskAction::Commit(claims))?);
            tasks.push(self.task(TaskAction::Commit(ends))?);
        }
        Ok(tasks)
    }

    fn phases(&mut self, count: usize, shape: &Shape) -> Result<Vec<PlannedPhase>, PowerError> {
        let mut phases = Vec::new();
        for number in 0..count {
            let mut phase = self.phase(shape)?;
            // Threads of such a phase work on keys of their own that are new: none of them is purged.
            if number % 2 == 1 {
                self.now = self.now.plus(PHASE);
                let purge = self.task(TaskAction::Purge)?;
                self.own.clear();
                phases.push(phase);
                phase = self.phase(shape)?;
                phase.threads.push(vec![purge]);
            }
            phases.push(phase);
            self.now = self.now.plus(PHASE);
        }
        Ok(phases)
    }

    fn phase(&mut self, shape: &Shape) -> Result<PlannedPhase, PowerError> {
        let mut threads = Vec::new();
        self.own.resize_with(self.own.len().max(shape.threads), Vec::new);
        for thread in 0..shape.threads {
            let tasks = (0..shape.tasks).map(|_| self.next(thread, shape));
            threads.push(tasks.collect::<Result<_, _>>()?);
        }
        Ok(PlannedPhase { now: self.now, threads })
    }

    /// The next task of a thread.
    fn next(&mut self, thread: usize, shape: &Shape) -> Result<PlannedTask, PowerError> {
        let action = match self.chance.u8(..24) {
            0..8 => self.claims(thread, shape)?,
            8 if shape.checkpoints == Checkpoints::ByOthers => {
                TaskAction::Checkpoint(self.chance.choice(MODES).unwrap_or("PASSIVE"))
            }
            9..11 => self.once(shape)?,
            _ => match self.chance.choice(self.own[thread].clone()) {
                Some(id) => self.follow(id, shape)?,
                None => self.claims(thread, shape)?,
            },
        };
        self.task(action)
    }

    fn task(&mut self, action: TaskAction) -> Result<PlannedTask, PowerError> {
        let task = PlannedTask { number: self.tasks, now: self.now, action };
        self.tasks += 1;
        if self.books.enter(&task) {
            return Ok(task);
        }
        let what = format!("{:?} has no say over what is there", task.action);
        Err(PowerError::Unplanned { task: task.number, what })
    }

    /// Claims on keys nobody used before.
    fn claims(&mut self, thread: usize, shape: &Shape) -> Result<TaskAction, PowerError> {
        let mut batch = Vec::new();
        for _ in 0..self.chance.usize(1..=shape.batch) {
            let name = self.new_key();
            let retention = if self.chance.bool() { SHORT } else { LONG };
            let request = self.bytes(0..300);
            let entry = match self.chance.u8(..6) {
                0 => Entry::Queue { pick_up: LEASE, request },
                1 => Entry::Run { lease: LEASE, request: Some(request) },
                _ => Entry::Run { lease: LEASE, request: None },
            };
            let (over, fence, owner) = (Over::Nothing, Fence::FIRST, self.owner());
            let claim = claim(&name, Claiming { over, fence, owner, retention, entry })?;
            self.own[thread].push(claim.operation.id());
            batch.push(Write::Claim(claim));
        }
        Ok(TaskAction::Commit(batch))
    }

    fn once(&mut self, shape: &Shape) -> Result<TaskAction, PowerError> {
        let meaning = match self.chance.u8(..6) {
            0 => AnswerMeaning::NotDone,
            1 => AnswerMeaning::Failed,
            _ => AnswerMeaning::Completed,
        };
        let answer = AttemptAnswer { outcome: self.outcome(shape)?, meaning };
        let operation = operation(&self.new_key())?;
        Ok(TaskAction::Once(OnceTask { operation, answer }))
    }

    /// Whatever may happen next to a key that was claimed.
    fn follow(&mut self, id: OperationId, shape: &Shape) -> Result<TaskAction, PowerError> {
        let Some(record) = self.books.state(id).record else { return self.note(id) };
        if self.chance.u8(..8) == 0 {
            return self.note(id);
        }
        let write = match &record.state {
            State::Running { .. } => match self.chance.u8(..16) {
                0..2 => Write::Renew(renewal(&record)),
                2..5 => self.step(&record)?,
                5 if record.fence == Fence::FIRST => {
                    return Ok(TaskAction::Withdraw(attempt(&record)));
                }
                6 => Write::Claim(self.over(&record, Over::Abandoned(record.stamp()))),
                _ => Write::Settle(self.end(&record, shape)?),
            },
            State::Pending { .. } | State::InDoubt { .. } => match self.chance.u8(..2) {
                0 => Write::Claim(self.over(&record, Over::Abandoned(record.stamp()))),
                _ => {
                    let to = Settlement::Completed(self.outcome(shape)?);
                    let by = By::Onlooker(record.stamp());
                    Write::Settle(Settle { id, by, to, keep: LEASE })
                }
            },
            // What is finished mostly stays so, to be read again later. A life is told from the next by when
            // it began.
            State::Completed { .. } | State::Failed { .. } if self.chance.u8(..4) > 0 => {
                return self.note(id);
            }
            State::Released | State::Completed { .. } | State::Failed { .. } | State::Buried
                if record.created_at == self.now =>
            {
                return self.note(id);
            }
            State::Released | State::Completed { .. } | State::Failed { .. } | State::Buried => {
                Write::Claim(self.over(&record, Over::Spent(record.stamp())))
            }
        };
        Ok(TaskAction::Commit(vec![write]))
    }

    fn end(&mut self, record: &Record, shape: &Shape) -> Result<Settle, PowerError> {
        let to = match self.chance.u8(..10) {
            0 => Settlement::Released,
            1 => Settlement::InDoubt(Doubt::Unanswered),
            2 if record.fence == Fence::FIRST => Settlement::Declined,
            3 => Settlement::Failed(self.outcome(shape)?),
            _ => Settlement::Completed(self.outcome(shape)?),
        };
        let by = By::Owner { fence: record.fence, owner: record.owner };
        Ok(Settle { id: record.operation.id(), by, to, keep: LEASE })
    }

    fn step(&mut self, record: &Record) -> Result<Write, PowerError> {
        let Attempt { id, fence, owner } = attempt(record);
        let number = u16::try_from(self.books.state(id).steps.len() + 1).unwrap_or(u16::MAX);
        let named = StepName::parse(format!("step-{number}"));
        let name = named.map_err(PowerError::refused("name a step"))?;
        let step = Step::new(number, name, 1, self.bytes(0..2000));
        let step = step.map_err(PowerError::refused("make a step"))?;
        Ok(Write::Step(KeepStep { id, fence, owner, life: record.created_at, step }))
    }

    fn note(&mut self, id: OperationId) -> Result<TaskAction, PowerError> {
        let why = format!("because of {}", self.chance.u64(..));
        let reason = Reason::new("ada", &why).map_err(PowerError::refused("make a note"))?;
        let (deed, phase) = (Deed::Release, Phase::Intended);
        Ok(TaskAction::Note(Note { id, fence: Fence::FIRST, deed, phase, reason }))
    }

    fn over(&mut self, record: &Record, over: Over) -> Claim {
        Claim {
            operation: record.operation.clone(),
            fingerprint: fingerprint(),
            over,
            fence: record.fence.next(),
            owner: self.owner(),
            recovery: Recovery::Hold,
            retention: LONG,
            tombstone: Duration::ZERO,
            entry: Entry::Run { lease: LEASE, request: None },
        }
    }

    fn outcome(&mut self, shape: &Shape) -> Result<Outcome, PowerError> {
        let bytes = self.bytes(shape.body_bytes.clone());
        outcome(bytes)
    }

    fn bytes(&mut self, len: Range<usize>) -> Bytes {
        let len = self.chance.usize(len);
        std::iter::repeat_with(|| self.chance.u8(..)).take(len).collect()
    }

    fn owner(&mut self) -> Owner {
        Owner::from_random(self.chance.u64(..))
    }

    fn new_key(&mut self) -> String {
        self.keys += 1;
        format!("key-{}", self.keys)
    }
}

const MODES: [&str; 3] = ["PASSIVE", "RESTART", "TRUNCATE"];

struct Claiming {
    over: Over,
    fence: Fence,
    owner: Owner,
    retention: Duration,
    entry: Entry,
}

fn claim(key: &str, claiming: Claiming) -> Result<Claim, PowerError> {
    let Claiming { over, fence, owner, retention, entry } = claiming;
    // What is kept for a short time leaves a tombstone, which is kept to the end.
    let tombstone = if retention == SHORT && key.ends_with('1') { LONG } else { Duration::ZERO };
    let (operation, fingerprint, recovery) = (operation(key)?, fingerprint(), Recovery::Hold);
    Ok(Claim { operation, fingerprint, over, fence, owner, recovery, retention, tombstone, entry })
}

fn attempt(record: &Record) -> Attempt {
    Attempt { id: record.operation.id(), fence: record.fence, owner: record.owner }
}

fn renewal(record: &Record) -> Renew {
    let Attempt { id, fence, owner } = attempt(record);
    Renew { id, fence, owner, lease: LEASE }
}

/// An operation that is in no plan: how it is claimed, how it ends, and its record then.
pub(crate) fn newcomer(now: Timestamp) -> Result<(Claim, Settle, Record), PowerError> {
    let (over, fence, owner) = (Over::Nothing, Fence::FIRST, Owner(1));
    let entry = Entry::Run { lease: LEASE, request: None };
    let claim = claim("newcomer", Claiming { over, fence, owner, retention: LONG, entry })?;
    let (id, by) = (claim.operation.id(), By::Owner { fence, owner });
    let to = Settlement::Completed(outcome("it goes on")?);
    let end = Settle { id, by, to, keep: LEASE };
    let claimed = apply::claim(now, None, &claim);
    let record = claimed.and_then(|claimed| apply::settle(now, Some(&claimed), &end));
    let unplanned = || PowerError::Log("a newcomer has no say over nothing".to_owned());
    Ok((claim, end, record.ok_or_else(unplanned)?))
}
