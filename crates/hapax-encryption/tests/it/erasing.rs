//! A tenant is erased by forgetting its keys: what it did is known, what was said is not.

use std::{sync::atomic::Ordering::SeqCst, time::Duration};

use hapax_core::{
    Body, Reason, Store, StoreError, Tenant,
    store::{KeyStorage, Write},
};
use hapax_encryption::{Encryption, KEYS_SEEN_FOR};
use tokio::time::advance;

use crate::world::{
    HEARD, Service, World, begin, claim, complete, finish, heard, keeping, load, master, operation,
    queueing, told,
};

async fn erase(world: &World, tenant: &str) -> usize {
    let reason = Reason::new("ada", "they left us").unwrap();
    world.rows.erase_data_keys(Tenant::parse(tenant).unwrap(), reason).await.unwrap()
}

fn not_kept() -> Body {
    Body::NotKept { len: HEARD.len() as u64 }
}

#[tokio::test(start_paused = true)]
async fn an_erased_answer_is_known_to_have_been_and_cannot_be_read_within_a_bound() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let (acme, umbrella) = (operation("acme", "k"), operation("umbrella", "k"));
    complete(&store, &acme).await;
    complete(&store, &umbrella).await;
    assert_eq!(erase(&world, "acme").await, 1);
    assert_eq!(told(&store, &acme).await, heard(), "it has not looked yet");
    advance(KEYS_SEEN_FOR).await;
    let erased = load(&store, &acme).await.unwrap();
    assert_eq!(*erased.outcome().unwrap().body(), not_kept());
    assert_eq!(erased.outcome().unwrap().status(), 201);
    assert_eq!(told(&store, &umbrella).await, heard(), "others are untouched");
    let another = world.open(Encryption::new(master(1))).await;
    assert_eq!(told(&another, &acme).await, not_kept(), "who starts later never had the key");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_comes_back_gets_a_new_key_and_the_old_answers_stay_erased() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let (before, after) = (operation("acme", "before"), operation("acme", "after"));
    complete(&store, &before).await;
    erase(&world, "acme").await;
    advance(KEYS_SEEN_FOR).await;
    complete(&store, &after).await;
    assert_eq!(told(&store, &after).await, heard());
    assert_eq!(told(&store, &before).await, not_kept());
    let keys = world.rows.data_keys(Tenant::parse("acme").unwrap()).await.unwrap().keys;
    assert_eq!(keys.iter().map(|key| key.id.version).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_finished_when_it_was_erased_can_still_end() {
    let world = World::new();
    let store = world.open(Encryption::new(master(1))).await;
    let (running, queued) = (operation("acme", "running"), operation("acme", "queued"));
    let attempt = begin(&store, &running, keeping()).await;
    begin(&store, &queued, queueing()).await;
    erase(&world, "acme").await;
    advance(KEYS_SEEN_FOR).await;
    world.pass(Duration::from_secs(2 * 60 * 60));
    let overdue = store.overdue(10).await.unwrap();
    let requests: Vec<_> = overdue.iter().map(|record| record.request().cloned()).collect();
    assert_eq!(overdue.len(), 2, "both are found");
    assert!(requests.iter().all(|request| request.as_ref().is_none_or(|bytes| bytes.is_empty())));
    finish(&store, &attempt).await.unwrap();
    assert_eq!(told(&store, &running).await, heard(), "under a key of its own");
}

#[tokio::test(start_paused = true)]
async fn while_the_master_key_is_away_nothing_new_is_begun_and_what_is_begun_can_end() {
    let world = World::new();
    let service = Service::new();
    let store = world.open(Encryption::new(service.clone())).await;
    let (known, stranger) = (operation("acme", "known"), operation("umbrella", "stranger"));
    let attempt = begin(&store, &known, keeping()).await;
    service.away.store(true, SeqCst);
    let claim = claim(&store, &stranger, keeping());
    let refused = store.commit(vec![Write::Claim(claim.clone())]).await.remove(0).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let loaded = world.rows.load(vec![stranger.id()]).await.remove(0).unwrap();
    assert!(loaded.record.is_none(), "nothing was written");
    advance(KEYS_SEEN_FOR * 2).await;
    finish(&store, &attempt).await.unwrap();
    assert_eq!(told(&store, &known).await, heard(), "its key was unwrapped before");
    let asked = service.asked.load(SeqCst);
    for _ in 0..10 {
        store.commit(vec![Write::Claim(claim.clone())]).await.remove(0).unwrap_err();
    }
    assert!(service.asked.load(SeqCst) <= asked + 1, "who is away is not asked by everybody");
    service.away.store(false, SeqCst);
    advance(Duration::from_secs(2)).await;
    store.commit(vec![Write::Claim(claim)]).await.remove(0).unwrap();
    let reopened = world.open(Encryption::new(service.clone())).await;
    service.away.store(true, SeqCst);
    let refused = load(&reopened, &known).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "not damaged, not absent: {refused:?}");
}
