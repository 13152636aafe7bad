//! Whatever is done to both, the memory store and this one answer alike.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use hapax_core::{
    Doubt, Fence, Owner, Recovery, Step, StepName, Store, Timestamp, memory,
    store::{By, Claim, Entry, Filter, KeepStep, Over, Page, Renew, Settle, Settlement, Write},
};
use hapax_sqlite::{Durability, Options};

use crate::{
    backend::Sqlite,
    calls::{completion, first_claim, operation},
};

const KEYS: usize = 12;

#[tokio::test]
async fn random_histories_are_answered_as_the_memory_store_answers() {
    for seed in 0..40 {
        let sqlite = Sqlite::new();
        let options = Options { durability: Durability::Normal, ..sqlite.options() };
        let store = hapax_sqlite::Store::open(sqlite.path(), options).expect("it opens");
        let memory = memory::Store::new(store.salt(), sqlite.now());
        let mut rng = Rng::with_seed(seed);
        for step in 0..60 {
            sqlite.move_clock(rng.i64(0..20_000_000));
            let batch = random_batch(&mut rng, &memory).await;
            let ours = format!("{:?}", store.commit(batch.clone()).await);
            let theirs = format!("{:?}", memory.commit(batch).await);
            assert_eq!(ours, theirs, "seed {seed}, step {step}");
            if rng.u8(..8) == 0 {
                sqlite.move_clock(rng.i64(0..100_000_000));
                // Not fewer than there are: which come first is the store's own choice.
                let (ours, theirs) = (store.purge(KEYS).await, memory.purge(KEYS).await);
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "seed {seed}, step {step}");
            }
            let (ours, theirs) = (everything(&store).await, everything(&memory).await);
            assert_eq!(ours, theirs, "seed {seed}, step {step}");
        }
    }
}

/// All a store tells: every record, what is overdue, and every listing.
async fn everything(store: &impl Store) -> String {
    let ids = (0..KEYS).map(|key| operation(&name(key)).id()).collect();
    let loaded = store.load(ids).await;
    let mut overdue = store.overdue(KEYS).await.expect("readable");
    overdue.sort_by_key(|record| record.operation.id());
    let page = Page { after: Some(operation(&name(0)).id()), limit: KEYS / 2 };
    let listed = store.list(Filter::default(), page).await;
    let mut steps = Vec::new();
    for key in 0..KEYS {
        steps.push(store.steps(operation(&name(key)).id()).await.expect("readable"));
    }
    format!("{loaded:?} {overdue:?} {listed:?} {steps:?}")
}

fn name(key: usize) -> String {
    format!("0191e3a4-7c1d-7e2f-8a3b-0000000000{key:02x}")
}

/// At most one write for each key, most of them sensible, some of them late, stale or wrong.
async fn random_batch(rng: &mut Rng, memory: &memory::Store) -> Vec<Write> {
    let mut batch = Vec::new();
    for key in 0..KEYS {
        let id = operation(&name(key)).id();
        let found = memory.load(vec![id]).await.remove(0).expect("readable").record;
        let (fence, owner) =
            found.as_ref().map_or((Fence::FIRST, Owner(1)), |found| (found.fence, found.owner));
        let owner = if rng.u8(..6) == 0 { Owner(rng.i64(1..4)) } else { owner };
        match rng.u8(..8) {
            0 | 1 => {
                let over = match (&found, rng.u8(..3)) {
                    (None, _) | (_, 0) => Over::Nothing,
                    (Some(found), 1) => Over::Spent(found.stamp()),
                    (Some(found), _) => Over::Abandoned(found.stamp()),
                };
                batch.push(Write::Claim(random_claim(rng, key, over, fence)));
            }
            2 | 3 => {
                let by = match &found {
                    Some(found) if rng.bool() => By::Onlooker(found.stamp()),
                    Some(_) | None => By::Owner { fence, owner },
                };
                batch.push(Write::Settle(random_settle(rng, key, by)));
            }
            4 => {
                let lease = Duration::from_secs(rng.u64(1..30));
                batch.push(Write::Renew(Renew { id, fence, owner, lease }));
            }
            5 | 6 => {
                let kept = memory.steps(id).await.expect("readable").len();
                let step = random_step(rng, kept);
                let life = found.as_ref().map_or(Timestamp::ZERO, |found| found.created_at);
                batch.push(Write::Step(KeepStep { id, fence, owner, life, step }));
            }
            _ => {}
        }
    }
    batch
}

/// The next step, or one that is kept already.
fn random_step(rng: &mut Rng, kept: usize) -> Step {
    let number = u16::try_from(rng.usize(kept.max(1)..=kept + 1)).expect("few steps");
    let name = StepName::parse(["charge", "mail"][rng.usize(..2)]).expect("a name");
    let result = Bytes::from(vec![rng.u8(..); rng.usize(..3000)]);
    Step::new(number, name, rng.u16(..3), result).expect("within the limits")
}

fn random_claim(rng: &mut Rng, key: usize, over: Over, fence: Fence) -> Claim {
    let request = Bytes::from(vec![rng.u8(..); rng.usize(..9000)]);
    let span = Duration::from_secs(rng.u64(1..30));
    Claim {
        over,
        fence: if over == Over::Nothing { Fence::FIRST } else { fence.next() },
        owner: Owner(rng.i64(1..4)),
        recovery: [Recovery::Resend, Recovery::Probe, Recovery::Hold][rng.usize(..3)],
        retention: Duration::from_secs(rng.u64(1..200)),
        tombstone: Duration::from_secs([0, 60][rng.usize(..2)]),
        entry: match rng.u8(..3) {
            0 => Entry::Queue { pick_up: span, request },
            1 => Entry::Run { lease: span, request: Some(request) },
            _ => Entry::Run { lease: span, request: None },
        },
        ..first_claim(&name(key))
    }
}

fn random_settle(rng: &mut Rng, key: usize, by: By) -> Settle {
    let body = vec![rng.u8(..); rng.usize(..9000)];
    let completed = completion(&name(key), &body);
    let to = match (rng.u8(..5), completed.to) {
        (0, Settlement::Completed(outcome)) => Settlement::Failed(outcome),
        (1, _) => Settlement::Released,
        (2, _) => Settlement::InDoubt(Doubt::Interrupted),
        (_, completed) => completed,
    };
    Settle { by, to, keep: Duration::from_secs(rng.u64(..90)), ..completed }
}
