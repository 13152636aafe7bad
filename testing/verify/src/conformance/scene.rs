//! What the cases share: callers, and writes that are compared with the reference as they happen.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    AnswerMeaning, Arrival, Attempt, AttemptAnswer, AttemptEnd, Body, Decision, Doubt, Faults,
    Fence, Header, Key, Operation, OperationId, Outcome, Owner, Policy, Record, Recovery,
    RequestParts, RetainFrom, Retention, RunMode, Salt, Scope, Store, StoreError, Tenant,
    Timestamp, apply, decide, settle,
    store::{By, Claim, Loaded, Purged, Renew, Settle, Settlement, Write, Written},
    time::micros,
};

use super::Backend;

/// Long enough that no case outlives it by being slow.
pub(super) const LEASE: Duration = Duration::from_secs(10 * 60);
/// The retention of a caller that asks for nothing else.
pub(super) const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// Calls of a bounded walk (overdue, purge) after which it must have come round.
pub(super) const ROUNDS_MAX: usize = 100;

/// A database and one handle on it.
pub(super) struct StoreScene<B: Backend> {
    pub(super) backend: B,
    pub(super) store: B::Store,
}

impl<B: Backend> StoreScene<B> {
    pub(super) async fn new() -> Self {
        let backend = B::create().await;
        let store = backend.open(Faults::default()).await;
        Self { backend, store }
    }

    /// Another handle, as another process would have.
    pub(super) async fn open(&self) -> B::Store {
        self.backend.open(Faults::default()).await
    }

    /// Moves the store's clock forward.
    pub(super) async fn pass(&self, span: Duration) {
        self.backend.step_clock(micros(span)).await;
    }

    /// Moves the store's clock backward.
    pub(super) async fn turn_back(&self, span: Duration) {
        self.backend.step_clock(-micros(span)).await;
    }
}

/// Somebody who asks for an operation, with the policy that applies to it.
#[derive(Debug, Clone)]
pub(super) struct ScenarioCaller {
    pub(super) operation: Operation,
    pub(super) owner: Owner,
    body: &'static str,
    recovery: Recovery,
    retention: Retention,
    mode: RunMode,
}

impl ScenarioCaller {
    pub(super) fn new(key: &str) -> Self {
        Self {
            operation: operation("acme", "POST /payments", key),
            owner: Owner(1),
            body: "{\"amount\":100}",
            recovery: Recovery::Hold,
            retention: Retention {
                window: WINDOW,
                from: RetainFrom::Creation,
                tombstone: Duration::ZERO,
            },
            mode: RunMode::Run { request: None },
        }
    }

    pub(super) fn owner(self, owner: i64) -> Self {
        Self { owner: Owner(owner), ..self }
    }

    pub(super) fn saying(self, body: &'static str) -> Self {
        Self { body, ..self }
    }

    pub(super) fn recovering(self, recovery: Recovery) -> Self {
        Self { recovery, ..self }
    }

    pub(super) fn keeping(self, request: &'static [u8]) -> Self {
        Self { mode: RunMode::Run { request: Some(Bytes::from_static(request)) }, ..self }
    }

    pub(super) fn queueing(self, request: &'static [u8]) -> Self {
        Self { mode: RunMode::Queue { request: Bytes::from_static(request) }, ..self }
    }

    pub(super) fn retaining(self, window: Duration) -> Self {
        Self { retention: Retention { window, ..self.retention }, ..self }
    }

    pub(super) fn retaining_from(self, from: RetainFrom) -> Self {
        Self { retention: Retention { from, ..self.retention }, ..self }
    }

    pub(super) fn burying(self, tombstone: Duration) -> Self {
        Self { retention: Retention { tombstone, ..self.retention }, ..self }
    }

    pub(super) fn of(self, operation: Operation) -> Self {
        Self { operation, ..self }
    }

    pub(super) fn id(&self) -> OperationId {
        self.operation.id()
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::new(LEASE, self.retention, self.recovery).unwrap()
    }

    pub(super) fn arrival(&self, salt: Salt) -> Arrival {
        let request = RequestParts { body: self.body.as_bytes(), ..RequestParts::default() };
        let fingerprint = salt.tenant_key(self.operation.tenant()).fingerprint(&request);
        let (operation, owner) = (self.operation.clone(), self.owner);
        Arrival { operation, fingerprint, owner, mode: self.mode.clone() }
    }

    /// The claim of a caller that expects to be the first.
    pub(super) fn first_claim(&self, salt: Salt) -> Claim {
        let decision = decide(Timestamp::ZERO, &self.arrival(salt), None, &self.policy());
        let Decision::Execute(claim) = decision else { panic!("an absent key must execute") };
        claim
    }

    pub(super) fn attempt(&self, fence: Fence) -> Attempt {
        Attempt { id: self.id(), fence, owner: self.owner }
    }

    /// How this caller's attempt ends when it is done and answers.
    pub(super) fn answers(&self, fence: Fence, outcome: Outcome) -> Settle {
        settle(&self.attempt(fence), AttemptEnd::completed(outcome), &self.policy())
    }

    /// How this caller's attempt ends when it is refused for good.
    pub(super) fn refuses(&self, fence: Fence, outcome: Outcome) -> Settle {
        settle(&self.attempt(fence), AttemptEnd::failed(outcome), &self.policy())
    }

    /// How this caller's attempt ends with an error that counts as not done.
    pub(super) fn breaks(&self, fence: Fence, outcome: Outcome) -> Settle {
        let answer = AttemptAnswer { outcome, meaning: AnswerMeaning::TakenForNotDone };
        settle(&self.attempt(fence), AttemptEnd::Answered(answer), &self.policy())
    }

    /// How this caller's attempt ends when no answer comes back.
    pub(super) fn hears_nothing(&self, fence: Fence) -> Settle {
        settle(&self.attempt(fence), AttemptEnd::Unanswered, &self.policy())
    }

    /// How this caller's attempt ends when nothing was sent.
    pub(super) fn sends_nothing(&self, fence: Fence) -> Settle {
        settle(&self.attempt(fence), AttemptEnd::NothingSent, &self.policy())
    }

    pub(super) fn renewal(&self, fence: Fence) -> Renew {
        Renew { id: self.id(), fence, owner: self.owner, lease: LEASE }
    }
}

pub(super) fn operation(tenant: &str, scope: &str, key: &str) -> Operation {
    Operation::new(
        Tenant::parse(tenant).unwrap(),
        Scope::parse(scope).unwrap(),
        Key::parse(key).unwrap(),
    )
}

/// An outcome with headers and a body that says `text`.
pub(super) fn outcome(status: u16, text: &str) -> Outcome {
    let header = Header { name: "content-type".into(), value: Bytes::from_static(b"text/plain") };
    Outcome::new(status, vec![header], Body::Kept(Bytes::copy_from_slice(text.as_bytes()))).unwrap()
}

/// What a sweeper writes when it gives a record up.
pub(super) fn give_up(record: &Record) -> Settle {
    onlook(record, Settlement::InDoubt(Doubt::OwnerVanished))
}

/// What somebody who only looked at the record writes.
pub(super) fn onlook(record: &Record, to: Settlement) -> Settle {
    let by = By::Onlooker(record.stamp());
    Settle { id: record.operation.id(), by, to, keep: LEASE }
}

pub(super) async fn load<S: Store>(store: &S, id: OperationId) -> Result<Loaded, StoreError> {
    one(store.load(vec![id]).await)
}

/// What is stored under the id, which must be readable.
pub(super) async fn record<S: Store>(store: &S, id: OperationId) -> Option<Record> {
    load(store, id).await.unwrap().record.map(|record| *record)
}

/// What is stored under the id, which must be there.
pub(super) async fn stored<S: Store>(store: &S, id: OperationId) -> Record {
    record(store, id).await.expect("the record must be there")
}

/// The store's clock.
pub(super) async fn now<S: Store>(store: &S) -> Timestamp {
    load(store, operation("nobody", "asks", "here").id()).await.unwrap().now
}

/// What the machine tells this caller, given what the store holds.
pub(super) async fn arrive<S: Store>(store: &S, caller: &ScenarioCaller) -> Decision {
    let Loaded { now, record } = load(store, caller.id()).await.unwrap();
    decide(now, &caller.arrival(store.salt()), record.as_deref(), &caller.policy())
}

/// Arrives, claims as told, and must win. Answers the fence it holds.
pub(super) async fn enter<S: Store>(store: &S, caller: &ScenarioCaller) -> Fence {
    let decision = arrive(store, caller).await;
    let (Decision::Execute(claim) | Decision::TakeOver { claim, .. }) = decision else {
        panic!("{caller:?} must be told to claim, not {decision:?}");
    };
    win(store, claim).await
}

/// Writes a claim that must be won.
pub(super) async fn win<S: Store>(store: &S, claim: Claim) -> Fence {
    let fence = claim.fence;
    let claimed = write(store, Write::Claim(claim)).await;
    assert!(matches!(claimed, Written::Done { .. }), "must be won, not {claimed:?}");
    fence
}

/// Enters and completes with an outcome that says `text`.
pub(super) async fn complete<S: Store>(store: &S, caller: &ScenarioCaller, text: &str) -> Fence {
    let fence = enter(store, caller).await;
    done(store, caller.answers(fence, outcome(201, text))).await;
    fence
}

/// Writes a settle that must count.
pub(super) async fn done<S: Store>(store: &S, settle: Settle) {
    let settled = write(store, Write::Settle(settle)).await;
    assert!(matches!(settled, Written::Done { .. }), "must count, not {settled:?}");
}

/// Writes a settle that must change nothing.
pub(super) async fn lost<S: Store>(store: &S, settle: Settle) {
    let settled = write(store, Write::Settle(settle)).await;
    assert!(matches!(settled, Written::Refused { .. }), "must be refused, not {settled:?}");
}

/// Writes one thing and compares what the store then holds with the reference.
pub(super) async fn write<S: Store>(store: &S, write: Write) -> Written {
    let before = record(store, write.id()).await;
    let written = commit_one(store, write.clone()).await.unwrap();
    let after = record(store, write.id()).await;
    match &written {
        Written::Done { now } => {
            let expected = apply::write(*now, before.as_ref(), &write);
            assert!(expected.is_some(), "{write:?} has no say over {before:?}, but counted");
            assert_eq!(after, expected);
        }
        Written::Refused { now, record } => {
            let refused = apply::write(*now, before.as_ref(), &write).is_none();
            assert!(refused, "{write:?} has a say over {before:?}, but was refused");
            assert_eq!(record.as_deref(), before.as_ref(), "the answer is not what is stored");
            assert_eq!(after, before, "a write that was refused changed the record");
        }
    }
    written
}

/// Commits a batch of one.
pub(super) async fn commit_one<S: Store>(store: &S, write: Write) -> Result<Written, StoreError> {
    one(store.commit(vec![write]).await)
}

/// Everything overdue: the walk is bounded per call, so it is called until it has come round.
pub(super) async fn all_overdue<S: Store>(store: &S) -> Vec<Record> {
    let mut found: Vec<Record> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        for record in store.overdue(ROUNDS_MAX).await.unwrap() {
            if !found.contains(&record) {
                found.push(record);
            }
        }
    }
    found
}

/// Purges until nothing is left to purge, and adds up what that did.
pub(super) async fn purge_all<S: Store>(store: &S) -> Purged {
    let mut sum = Purged::default();
    for _ in 0..ROUNDS_MAX {
        let purged = store.purge(ROUNDS_MAX).await.unwrap();
        sum.deleted += purged.deleted;
        sum.buried += purged.buried;
        sum.timed_out += purged.timed_out;
    }
    sum
}

/// The only answer to a batch of one.
pub(super) fn one<T>(mut answers: Vec<T>) -> T {
    assert_eq!(answers.len(), 1, "one item, one answer");
    answers.remove(0)
}
