//! Random histories, applied here and to the store in memory, are answered alike.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    Body, Doubt, Fence, Fingerprint, Key, Operation, OperationId, Outcome, Owner, Record, Recovery,
    Salt, Scope, Stamp, StateTag, StepName, Store, StoreError, Tenant, Timestamp, memory,
    store::{By, Claim, Entry, KeepStep, Over, Renew, Settle, Settlement, Write, Written},
};
use hapax_verify::conformance::Backend;

use crate::backend::Postgres;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn operation(key: &str) -> Operation {
    let (tenant, scope) = (Tenant::parse("acme").unwrap(), Scope::parse("POST /pay").unwrap());
    Operation::new(tenant, scope, Key::parse(key).unwrap())
}

pub(crate) fn claim(key: &str, owner: i64) -> Claim {
    Claim {
        operation: operation(key),
        fingerprint: Fingerprint::from_bytes([7; Fingerprint::BYTES]),
        over: Over::Nothing,
        fence: Fence::FIRST,
        owner: Owner(owner),
        recovery: Recovery::Resend,
        retention: RETENTION,
        tombstone: Duration::ZERO,
        entry: Entry::Run { lease: LEASE, request: None },
    }
}

pub(crate) fn completion(key: &str, owner: i64, body: &[u8]) -> Settle {
    let body = Body::Kept(Bytes::copy_from_slice(body));
    Settle {
        id: operation(key).id(),
        by: By::Owner { fence: Fence::FIRST, owner: Owner(owner) },
        to: Settlement::Completed(Outcome::new(201, Vec::new(), body).unwrap()),
        keep: Duration::ZERO,
    }
}

/// Claims and completes under a new key.
pub(crate) async fn complete(store: &impl Store, key: &str, body: &[u8]) {
    let batch = vec![Write::Claim(claim(key, 1))];
    assert!(matches!(store.commit(batch).await[..], [Ok(Written::Done { .. })]));
    let batch = vec![Write::Settle(completion(key, 1, body))];
    assert!(matches!(store.commit(batch).await[..], [Ok(Written::Done { .. })]));
}

const KEYS: usize = 6;
const BATCHES: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn random_batches_are_answered_as_by_the_store_in_memory() {
    let seed = 0x5eed;
    let mut random = fastrand::Rng::with_seed(seed);
    let database = Postgres::empty().await;
    let store = database.store().await;
    let offset = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&offset);
    let memory = memory::Store::new(Salt::from_bytes([0; 32]), move || {
        Timestamp::from_micros(1_800_000_000_000_000 + clock.load(Ordering::SeqCst))
    });
    for round in 0..BATCHES {
        if random.u8(..4) == 0 {
            let step = [LEASE, LEASE / 2, RETENTION / 3][random.usize(..3)];
            let step = i64::try_from(step.as_micros()).unwrap() + 1_000_000;
            offset.fetch_add(step, Ordering::SeqCst);
            database.step_clock(step).await;
        }
        if random.u8(..10) == 0 {
            assert_eq!(
                store.purge(100).await.unwrap(),
                memory.purge(100).await.unwrap(),
                "{round}"
            );
        }
        let ids: Vec<_> = (0..KEYS).map(|at| operation(&format!("key {at}")).id()).collect();
        let (ours, theirs) = (all(&store, &ids).await, all(&memory, &ids).await);
        let shapes = |records: &[Option<Record>]| records.iter().map(shape).collect::<Vec<_>>();
        assert_eq!(shapes(&ours), shapes(&theirs), "seed {seed:#x}, batch {round}");
        let kept = (all_steps(&store, &ids).await, all_steps(&memory, &ids).await);
        assert_eq!(kept.0, kept.1, "seed {seed:#x}, batch {round}");
        let plan = plan(&mut random);
        let (ours, theirs) = (batch(&plan, &ours), batch(&plan, &theirs));
        let (ours, theirs) = (store.commit(ours).await, memory.commit(theirs).await);
        assert_eq!(answers(ours), answers(theirs), "seed {seed:#x}, batch {round}: {plan:?}");
    }
}

/// One thing to do to each key, with what randomness decides.
#[derive(Debug, Clone, Copy)]
struct Step {
    key: usize,
    what: u8,
    owner: i64,
    outdated: bool,
}

fn plan(random: &mut fastrand::Rng) -> Vec<Step> {
    let keys = (0..KEYS).filter(|_| random.bool()).collect::<Vec<_>>();
    let step = |key| Step {
        key,
        what: random.u8(..13),
        owner: random.i64(1..4),
        outdated: random.u8(..6) == 0,
    };
    keys.into_iter().map(step).collect()
}

fn batch(plan: &[Step], found: &[Option<Record>]) -> Vec<Write> {
    let write = |step: &Step| {
        let key = format!("key {}", step.key);
        let found = found[step.key].as_ref();
        let mut stamp = found.map(Record::stamp).unwrap_or(Stamp {
            fence: Fence::FIRST,
            owner: Owner(step.owner),
            tag: StateTag::Running,
            until: Timestamp::ZERO,
        });
        if step.outdated {
            stamp.owner = Owner(stamp.owner.0 + 1);
        }
        let (fence, owner) = (stamp.fence, stamp.owner);
        let over = |over, entry| Claim {
            over,
            fence: fence.next(),
            entry,
            tombstone: RETENTION / 2,
            ..claim(&key, step.owner)
        };
        let request = Bytes::from_static(b"request");
        let run = Entry::Run { lease: LEASE, request: Some(request.clone()) };
        let queue = Entry::Queue { pick_up: LEASE, request };
        let settle = |by, to| Settle { by, to, keep: RETENTION / 2, ..completion(&key, 1, b"") };
        let completed = completion(&key, 1, b"done").to;
        let failed = Settlement::Failed(Outcome::bare(404));
        let by = By::Owner { fence, owner };
        match step.what {
            0 | 1 => Write::Claim(claim(&key, step.owner)),
            2 => Write::Claim(Claim { entry: queue, ..claim(&key, step.owner) }),
            3 => Write::Claim(over(Over::Spent(stamp), run)),
            4 => {
                let run = Entry::Run { lease: LEASE, request: None };
                Write::Claim(over(Over::Abandoned(stamp), run))
            }
            5 => Write::Settle(settle(by, completed)),
            6 => Write::Settle(settle(By::Onlooker(stamp), failed)),
            7 => Write::Settle(settle(by, Settlement::Released)),
            8 => {
                let vanished = Settlement::InDoubt(Doubt::OwnerVanished);
                Write::Settle(settle(By::Onlooker(stamp), vanished))
            }
            9 => Write::Settle(settle(by, Settlement::InDoubt(Doubt::Unanswered))),
            10 | 11 => Write::Step(KeepStep {
                id: operation(&key).id(),
                fence,
                owner,
                life: found.map_or(Timestamp::ZERO, |found| found.created_at),
                step: hapax_core::Step::new(
                    1,
                    StepName::parse(["charge", "mail"][usize::from(step.what % 2)]).unwrap(),
                    1,
                    Bytes::copy_from_slice(&step.owner.to_be_bytes()),
                )
                .unwrap(),
            }),
            _ => Write::Renew(Renew { id: operation(&key).id(), fence, owner, lease: LEASE }),
        }
    };
    plan.iter().map(write).collect()
}

async fn all(store: &impl Store, ids: &[OperationId]) -> Vec<Option<Record>> {
    let loaded = store.load(ids.to_vec()).await.into_iter();
    loaded.map(|loaded| loaded.unwrap().record.map(|record| *record)).collect()
}

async fn all_steps(store: &impl Store, ids: &[OperationId]) -> Vec<Vec<hapax_core::Step>> {
    let mut all = Vec::new();
    for id in ids {
        let steps = store.steps(*id).await.unwrap();
        all.push(steps.into_iter().map(|stored| stored.step).collect());
    }
    all
}

/// What of a record does not depend on when exactly it was written.
fn shape(record: &Option<Record>) -> String {
    let Some(record) = record else { return "nothing".to_owned() };
    let kept = (record.fingerprint, record.recovery, record.tombstone, record.request());
    let until = record.until() != Timestamp::ZERO;
    format!(
        "{:?} {:?} {:?} {until} {kept:?} {:?}",
        record.tag(),
        record.fence,
        record.owner,
        record.outcome()
    )
}

fn answers(answers: Vec<Result<Written, StoreError>>) -> Vec<String> {
    let answer = |answer: Result<Written, StoreError>| match answer.unwrap() {
        Written::Done { .. } => "done".to_owned(),
        Written::Refused { record, .. } => {
            format!("found {}", shape(&record.map(|record| *record)))
        }
    };
    answers.into_iter().map(answer).collect()
}
