//! Ciphertext opens in its own place alone, and what is clear goes on being read.

use bytes::Bytes;
use hapax_core::{
    Body, RunMode, State, Step, StepName, Store, StoreError,
    codec::Row,
    store::{KeepStep, Write},
};
use hapax_encryption::{EncryptedStore, Encryption, EncryptionError, is_sealed};

use crate::world::{
    HEARD, SENT, World, begin, complete, finish, heard, keeping, load, master, operation, queueing,
    told, write,
};

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn rows_hold_nothing_of_what_was_sent_or_heard_and_their_owner_reads_all_of_it() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let (running, done) = (operation("acme", "running"), operation("acme", "done"));
    let attempt = begin(&store, &running, keeping()).await;
    complete(&store, &done).await;
    let life = load(&store, &running).await.unwrap().created_at;
    let name = StepName::parse("charge").unwrap();
    let step = Step::new(1, name, 1, Bytes::from_static(HEARD)).unwrap();
    let (fence, owner, id) = (attempt.fence, attempt.owner, attempt.id);
    let keep = KeepStep { id, fence, owner, life, step: step.clone() };
    write(&store, Write::Step(keep)).await.unwrap();

    let stored = load(&world.rows, &done).await.unwrap();
    let Body::Sealed { bytes, len } = stored.outcome().unwrap().body() else {
        panic!("{stored:?} is clear")
    };
    assert_eq!((stored.outcome().unwrap().status(), *len), (201, HEARD.len() as u64));
    assert!(stored.outcome().unwrap().headers().is_empty());
    assert!(!holds(bytes, HEARD) && !holds(bytes, b"what a header said"));
    let stored = load(&world.rows, &running).await.unwrap();
    let request = stored.request().unwrap();
    assert!(is_sealed(request) && !holds(request, SENT));
    let stored = world.rows.steps(running.id()).await.unwrap();
    assert!(is_sealed(stored[0].step.result()) && !holds(stored[0].step.result(), HEARD));

    let another = world.open(Encryption::new(master(1))).await;
    assert_eq!(told(&another, &done).await, heard());
    assert_eq!(load(&another, &running).await.unwrap().request().unwrap(), SENT);
    assert_eq!(another.steps(running.id()).await.unwrap()[0].step, step);
}

#[tokio::test]
async fn records_from_before_encryption_go_on_being_read() {
    let world = World::new();
    let (before, open) = (operation("acme", "before"), operation("acme", "open"));
    complete(&world.rows, &before).await;
    let attempt = begin(&world.rows, &open, keeping()).await;
    let store = world.open(Encryption::new(master(1))).await;
    assert_eq!(told(&store, &before).await, heard());
    assert_eq!(load(&store, &open).await.unwrap().request().unwrap(), SENT);
    finish(&store, &attempt).await.unwrap();
    assert_eq!(told(&store, &open).await, heard());
    let stored = load(&world.rows, &open).await.unwrap();
    assert!(matches!(stored.outcome().unwrap().body(), Body::Sealed { .. }), "from now on");
}

async fn damaged(store: &impl Store, key: &str) {
    let refused = load(store, &operation("acme", key)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused:?}");
}

#[tokio::test]
async fn what_was_moved_between_rows_or_altered_is_not_served() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    for key in ["one", "two", "status", "fence", "state", "length"] {
        complete(&store, &operation("acme", key)).await;
    }
    for key in ["running", "other"] {
        begin(&store, &operation("acme", key), keeping()).await;
    }
    let of = async |key: &str| load(&world.rows, &operation("acme", key)).await;
    let one = of("one").await.unwrap();
    let change = |key: &str, change: &dyn Fn(&mut hapax_core::Record)| {
        let mut record = one.clone();
        record.operation = operation("acme", key);
        change(&mut record);
        // What nobody has a key for, its digest included, is written as if by the store.
        world.rows.tamper(record.operation.id(), |row| *row = Row::seal(&record));
    };
    change("two", &|_| {});
    damaged(&store, "two").await;
    for (key, status) in [("status", 402), ("length", 201)] {
        let own = of(key).await.unwrap();
        let Body::Sealed { len, bytes } = own.outcome().unwrap().body().clone() else {
            panic!("{own:?} is clear")
        };
        let len = if key == "length" { len + 1 } else { len };
        let body = Body::Sealed { len, bytes };
        let outcome = hapax_core::Outcome::new(status, Vec::new(), body).unwrap();
        let state = State::Completed { outcome };
        let altered = hapax_core::Record { state, ..own };
        world.rows.tamper(altered.operation.id(), |row| *row = Row::seal(&altered));
        damaged(&store, key).await;
    }
    let fence = operation("acme", "fence").id();
    world.rows.tamper(fence, |row| row.fence += 1);
    damaged(&store, "fence").await;
    let state = operation("acme", "state").id();
    world.rows.tamper(state, |row| row.state = hapax_core::StateTag::Failed as i16);
    damaged(&store, "state").await;

    let request = of("running").await.unwrap().request().unwrap().clone();
    world.rows.tamper(operation("acme", "other").id(), |row| row.request = Some(request));
    damaged(&store, "other").await;
    assert_eq!(told(&store, &operation("acme", "one")).await, heard(), "it was only copied");
}

#[tokio::test]
async fn a_step_of_an_earlier_life_or_another_place_is_not_taken_for_one_of_this() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let operation = operation("acme", "steps");
    let attempt = begin(&store, &operation, keeping()).await;
    let life = load(&store, &operation).await.unwrap().created_at;
    let step = |number, name| {
        Step::new(number, StepName::parse(name).unwrap(), 1, Bytes::from_static(HEARD)).unwrap()
    };
    let (fence, owner, id) = (attempt.fence, attempt.owner, attempt.id);
    let keep = KeepStep { id, fence, owner, life, step: step(1, "charge") };
    write(&store, Write::Step(keep)).await.unwrap();
    let kept = world.rows.steps(id).await.unwrap().remove(0).step;
    let forged = |number, name| step(number, name).with_result(kept.result().clone()).unwrap();
    for step in [forged(2, "charge"), forged(2, "mail")] {
        let keep = KeepStep { id, fence, owner, life, step };
        write(&world.rows, Write::Step(keep)).await.unwrap();
        let refused = store.steps(id).await.unwrap_err();
        assert!(matches!(refused, StoreError::Damaged(_)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_store_of_another_master_key_is_not_opened() {
    let world = World::new();
    complete(&world.open(Encryption::new(master(1))).await, &operation("acme", "k")).await;
    let refused = EncryptedStore::new(world.rows.clone(), Encryption::new(master(2))).await;
    let said = refused.map(|_| ()).unwrap_err();
    assert!(matches!(said, EncryptionError::OtherMaster { keys: 1, .. }), "{said}");
    assert!(said.to_string().contains("previous master key"), "{said}");
}

#[tokio::test]
async fn a_queued_request_is_picked_up_in_the_clear() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    begin(&store, &operation("acme", "queued"), queueing()).await;
    world.pass(std::time::Duration::from_secs(3600));
    let overdue = store.overdue(10).await.unwrap();
    assert_eq!(overdue[0].request().unwrap(), SENT);
}

#[tokio::test]
async fn settling_what_was_never_there_is_refused_as_by_any_store() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let nobody = operation("acme", "nobody");
    let claim = crate::world::claim(&store, &nobody, RunMode::Run { request: None });
    let attempt = hapax_core::Attempt { id: nobody.id(), fence: claim.fence, owner: claim.owner };
    let end = hapax_core::settle(
        &attempt,
        hapax_core::AttemptEnd::completed(crate::world::outcome()),
        &hapax_core::Policy::default(),
    );
    let answer = store.commit(vec![Write::Settle(end)]).await.remove(0).unwrap();
    assert!(matches!(answer, hapax_core::store::Written::Refused { record: None, .. }));
}
