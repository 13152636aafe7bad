//! The moving fault point: every named place fails once, in turn, at each of its passes.
//!
//! After each failure the store is asked, through a healthy handle, what it holds. That must agree
//! with the answer: unavailable wrote nothing, unconfirmed is all or nothing, done is there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use hapax_core::{
    Deed, Faults, Fence, Injected, Note, OperationId, Phase, Reason, Record, Recovery, StateTag,
    Step, StepName, Store, StoreError, apply,
    limits::CLAIM_ROUNDS_MAX,
    store::{KeepStep, Write, Written},
};

use super::{
    Backend,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, commit_one, complete, enter, load, outcome,
        record, stored,
    },
};

/// Passes of one place in one scenario after which something is wrong with the scenario.
const PASSES_MAX: usize = 200;

/// Whatever fails, wherever, the answers agree with what is stored.
pub async fn answers_agree_with_what_is_stored_wherever_it_fails<B: Backend>() {
    for place in B::PLACES {
        for pass in 1..=PASSES_MAX {
            let trap = Arc::new(Trap::new(place, pass));
            live_through::<B>(&trap).await;
            if !trap.sprung.load(Ordering::SeqCst) {
                assert_ne!(pass, 1, "{place} is never passed: no scenario here can prove it");
                break;
            }
            assert_ne!(pass, PASSES_MAX, "{place} is passed without end");
        }
    }
}

/// Fails the n-th pass of one place, once, after it was armed.
struct Trap {
    place: &'static str,
    passes_left: AtomicUsize,
    armed: AtomicBool,
    sprung: AtomicBool,
}

impl Trap {
    fn new(place: &'static str, pass: usize) -> Self {
        let passes_left = AtomicUsize::new(pass);
        Self { place, passes_left, armed: AtomicBool::new(false), sprung: AtomicBool::new(false) }
    }

    fn at(&self, place: &'static str) -> Result<(), Injected> {
        if place != self.place || !self.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let left = |left: usize| left.checked_sub(1);
        let before = self.passes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        if before != Ok(1) {
            return Ok(());
        }
        self.sprung.store(true, Ordering::SeqCst);
        Err(Injected { place })
    }
}

/// A whole life on a handle that fails once, judged through one that does not.
async fn live_through<B: Backend>(trap: &Arc<Trap>) {
    let scene = StoreScene::<B>::new().await;
    let (healthy, inner) = (&scene.store, Arc::clone(trap));
    let old = ScenarioCaller::new("old");
    complete(healthy, &old, "old").await;
    scene.pass(WINDOW).await;
    let faulty = scene.backend.open(Faults::new(move |place| inner.at(place))).await;
    trap.armed.store(true, Ordering::SeqCst);
    let caller = ScenarioCaller::new("life").recovering(Recovery::Resend).keeping(b"kept");
    let life = PairedHandles { healthy, faulty: &faulty };

    let claim = [Write::Claim(caller.first_claim(faulty.salt()))];
    life.until_sure(async || life.write(&claim).await).await;
    let fence = stored(healthy, caller.id()).await.fence;
    let renewal = [Write::Renew(caller.renewal(fence))];
    life.until_sure(async || life.write(&renewal).await).await;
    life.until_sure(async || life.load(caller.id()).await).await;
    let keep = KeepStep {
        id: caller.id(),
        fence,
        owner: caller.owner,
        life: stored(healthy, caller.id()).await.created_at,
        step: Step::new(1, StepName::parse("charge").unwrap(), 1, "receipt".into()).unwrap(),
    };
    life.until_sure(async || life.keep(keep.clone()).await).await;
    life.until_sure(async || life.steps(caller.id()).await).await;
    scene.pass(LEASE).await;
    life.until_sure(async || life.overdue(caller.id()).await).await;
    let end = [Write::Settle(caller.answers(fence, outcome(200, "done")))];
    life.until_sure(async || life.write(&end).await).await;
    assert_eq!(stored(healthy, caller.id()).await.tag(), StateTag::Completed);

    let [first, second] = ["first", "second"].map(ScenarioCaller::new);
    let fence = enter(healthy, &first).await;
    let claim = Write::Claim(second.first_claim(faulty.salt()));
    let mixed = [claim, Write::Settle(first.answers(fence, outcome(200, "mixed")))];
    life.until_sure(async || life.write(&mixed).await).await;
    assert_eq!(stored(healthy, first.id()).await.tag(), StateTag::Completed);
    assert_eq!(stored(healthy, second.id()).await.tag(), StateTag::Running);
    life.until_sure(async || life.note(first.id()).await).await;
    life.until_sure(async || life.purge(old.id()).await).await;
    complete(healthy, &ScenarioCaller::new("nothing stays locked"), "done").await;
}

/// Two handles on one database: what one answers is checked through the other.
struct PairedHandles<'a, S: Store> {
    healthy: &'a S,
    faulty: &'a S,
}

/// Whether an answer leaves nothing to ask again.
type Sure = bool;

impl<S: Store> PairedHandles<'_, S> {
    /// Tries again until the answer is sure. A store that failed once must serve again.
    async fn until_sure(&self, attempt: impl AsyncFn() -> Sure) {
        for _ in 0..CLAIM_ROUNDS_MAX {
            if attempt().await {
                return;
            }
        }
        panic!("one failure made the store fail for ever");
    }

    /// Writes these together, and judges each by what was stored before and is now.
    async fn write(&self, batch: &[Write]) -> Sure {
        let mut before = Vec::new();
        for write in batch {
            before.push(record(self.healthy, write.id()).await);
        }
        let answers = self.faulty.commit(batch.to_vec()).await;
        assert_eq!(answers.len(), batch.len(), "one answer for each");
        let mut sure = true;
        for ((write, before), answer) in batch.iter().zip(before).zip(answers) {
            let after = record(self.healthy, write.id()).await;
            let done = answer.map(|written| match written {
                Written::Done { now } => apply::write(now, before.as_ref(), write),
                Written::Refused { .. } => {
                    assert!(!matches!(write, Write::Renew(_)), "nobody followed {before:?}");
                    before.clone()
                }
            });
            let instant = after.as_ref().map(|record| match write {
                Write::Renew(renew) => record.until().minus(renew.lease),
                Write::Claim(_) | Write::Settle(_) | Write::Step(_) => record.changed_at,
            });
            let wanted = instant.and_then(|now| apply::write(now, before.as_ref(), write));
            sure &= judge(&before, &after, done, &wanted);
        }
        sure
    }

    async fn keep(&self, keep: KeepStep) -> Sure {
        let id = keep.id;
        let steps = async || self.healthy.steps(id).await.unwrap();
        let (step, before) = (keep.step.clone(), steps().await);
        let kept = commit_one(self.faulty, Write::Step(keep)).await;
        let after = steps().await;
        let is_kept = || matches!(&after[..], [stored] if stored.step == step);
        match kept {
            Ok(Written::Done { .. }) => {
                assert!(is_kept(), "the answer says it is kept");
                true
            }
            Ok(Written::Refused { .. }) => panic!("nobody followed its owner"),
            Err(StoreError::Unavailable(_)) => {
                assert_eq!(after, before, "unavailable, but something was written");
                false
            }
            Err(error) => {
                assert!(after == before || is_kept(), "half of it is stored: {after:?}");
                unsure(&error)
            }
        }
    }

    async fn steps(&self, id: OperationId) -> Sure {
        let expected = self.healthy.steps(id).await.unwrap();
        match self.faulty.steps(id).await {
            Ok(found) => {
                assert_eq!(found, expected);
                true
            }
            Err(error) => unsure(&error),
        }
    }

    async fn load(&self, id: OperationId) -> Sure {
        let expected = record(self.healthy, id).await;
        match load(self.faulty, id).await {
            Ok(loaded) => {
                assert_eq!(loaded.record.map(|record| *record), expected);
                true
            }
            Err(error) => unsure(&error),
        }
    }

    async fn overdue(&self, id: OperationId) -> Sure {
        let expected = stored(self.healthy, id).await;
        match self.faulty.overdue(10).await {
            Ok(found) => {
                assert!(found.iter().all(|record| *record == expected), "{found:?}");
                !found.is_empty()
            }
            Err(error) => unsure(&error),
        }
    }

    async fn note(&self, id: OperationId) -> Sure {
        let count = async || self.healthy.notes(id, 100).await.unwrap().len();
        let reason = Reason::new("somebody", "to see what becomes of it").unwrap();
        let (fence, deed, phase) = (Fence::FIRST, Deed::Release, Phase::Intended);
        let before = count().await;
        let noted = self.faulty.note(Note { id, fence, deed, phase, reason }).await;
        let written = count().await - before;
        match noted {
            Ok(()) => {
                assert_eq!(written, 1, "the answer says it is kept");
                true
            }
            Err(StoreError::Unavailable(_)) => {
                assert_eq!(written, 0, "unavailable, but something was written");
                false
            }
            Err(error) => unsure(&error),
        }
    }

    async fn purge(&self, id: OperationId) -> Sure {
        let before = record(self.healthy, id).await;
        let purged = self.faulty.purge(10).await;
        let after = record(self.healthy, id).await;
        match purged {
            Ok(purged) => {
                let gone = usize::from(before.is_some() && after.is_none());
                assert_eq!(purged.total(), gone, "a purge counts what it removed");
                after.is_none()
            }
            Err(StoreError::Unavailable(_)) => {
                assert_eq!(after, before, "unavailable, but something was written");
                false
            }
            Err(error) => unsure(&error),
        }
    }
}

/// `done` is what the answer says is stored now, `wanted` what the write would have stored.
fn judge(
    before: &Option<Record>,
    after: &Option<Record>,
    done: Result<Option<Record>, StoreError>,
    wanted: &Option<Record>,
) -> Sure {
    match done {
        Ok(expected) => {
            assert_eq!(after, &expected, "the answer says this is stored");
            true
        }
        Err(StoreError::Unavailable(_)) => {
            assert_eq!(after, before, "unavailable, but something was written");
            false
        }
        Err(error) => {
            assert!(after == before || after == wanted, "half of it is stored: {after:?}");
            unsure(&error)
        }
    }
}

fn unsure(error: &StoreError) -> Sure {
    assert!(
        matches!(error, StoreError::Unavailable(_) | StoreError::Unconfirmed(_)),
        "a passing failure is not {error:?}"
    );
    false
}
