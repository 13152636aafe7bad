//! Damage: what is stored is not what was written, or was written by a newer version.
//!
//! Such a row is never served, never overwritten, and fails nobody but itself.

use hapax_core::{
    Fence, State, StateTag, Store, StoreError,
    store::{Write, Written},
};

use super::{
    Backend, Damage,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, all_overdue, commit_one, complete, enter, load,
        outcome, purge_all, stored,
    },
};

/// A stored body in which a bit flipped is not served.
pub async fn a_flipped_bit_is_not_served<B: Backend>() {
    check_finished::<B>(Damage::FlippedBodyBit, is_damaged).await;
}

/// A finished record whose outcome is gone is not served.
pub async fn a_lost_outcome_is_not_served<B: Backend>() {
    check_finished::<B>(Damage::LostOutcome, is_damaged).await;
}

/// A state no version ever wrote is not guessed.
pub async fn an_unknown_state_is_not_guessed<B: Backend>() {
    check_finished::<B>(Damage::UnknownState, is_damaged).await;
    check_running::<B>(Damage::UnknownState, is_damaged).await;
}

/// A row of a newer version is not read.
pub async fn a_newer_row_is_not_read<B: Backend>() {
    check_finished::<B>(Damage::NewerRow, is_too_new).await;
    check_running::<B>(Damage::NewerRow, is_too_new).await;
}

/// An outcome of a newer version is not read.
pub async fn a_newer_outcome_is_not_read<B: Backend>() {
    check_finished::<B>(Damage::NewerOutcome, is_too_new).await;
}

/// A row that cannot be understood is not purged, however old it is.
pub async fn a_row_that_cannot_be_understood_is_not_purged<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [unknown, newer, plain] = ["unknown", "newer", "plain"].map(ScenarioCaller::new);
    for caller in [&unknown, &newer, &plain] {
        complete(&scene.store, caller, "done").await;
    }
    scene.backend.damage(unknown.id(), Damage::UnknownState).await;
    scene.backend.damage(newer.id(), Damage::NewerRow).await;
    scene.pass(WINDOW).await;
    assert_eq!(purge_all(&scene.store).await.deleted, 1);
    assert!(is_damaged(&load(&scene.store, unknown.id()).await.unwrap_err()));
    assert!(is_too_new(&load(&scene.store, newer.id()).await.unwrap_err()));
}

/// An outcome that was dropped after it expired is no damage: the record is buried.
pub async fn an_outcome_dropped_after_it_expired_reads_as_buried<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("dropped");
    complete(&scene.store, &caller, "done").await;
    scene.pass(WINDOW).await;
    scene.backend.damage(caller.id(), Damage::LostOutcome).await;
    assert_eq!(stored(&scene.store, caller.id()).await.state, State::Buried);
}

/// Damages one of three finished records: the others are served, and it is refused to everyone.
async fn check_finished<B: Backend>(damage: Damage, expected: fn(&StoreError) -> bool) {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let callers = ["before", "damaged", "after"].map(ScenarioCaller::new);
    for caller in &callers {
        complete(store, caller, "done").await;
    }
    scene.backend.damage(callers[1].id(), damage).await;
    check_load::<B>(&scene, &callers, expected).await;

    let first_claim = |caller: &ScenarioCaller| caller.clone().owner(2).first_claim(store.salt());
    let claims = callers.iter().map(|caller| Write::Claim(first_claim(caller))).collect();
    for (at, claimed) in store.commit(claims).await.into_iter().enumerate() {
        match claimed {
            Ok(Written::Refused { record: Some(_), .. }) => assert_ne!(at, 1, "damage was served"),
            Ok(claimed) => panic!("{damage:?} made a finished record {at} claimable: {claimed:?}"),
            Err(error) => assert!(at == 1 && expected(&error), "{damage:?} at {at}: {error:?}"),
        }
    }
    let settle = callers[1].answers(Fence::FIRST, outcome(200, "over it"));
    match commit_one(store, Write::Settle(settle)).await {
        Ok(Written::Refused { .. }) => {}
        Ok(Written::Done { .. }) => panic!("{damage:?} was overwritten"),
        Err(error) => assert!(expected(&error), "{error:?}"),
    }
    check_load::<B>(&scene, &callers, expected).await;
}

/// Damages one of three running records: the others go on, and it is refused to everyone.
async fn check_running<B: Backend>(damage: Damage, expected: fn(&StoreError) -> bool) {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let callers = ["before", "damaged", "after"].map(ScenarioCaller::new);
    for caller in &callers {
        enter(store, caller).await;
    }
    scene.backend.damage(callers[1].id(), damage).await;
    check_load::<B>(&scene, &callers, expected).await;

    let check = async |writes: [Write; 3]| {
        let answers = store.commit(writes.into()).await;
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(Written::Done { .. }) => assert_ne!(at, 1, "{damage:?} was overwritten"),
                Ok(Written::Refused { .. }) => {
                    panic!("{damage:?} made an owner believe it was followed")
                }
                Err(error) => assert!(at == 1 && expected(&error), "{damage:?} at {at}: {error:?}"),
            }
        }
    };
    check(callers.each_ref().map(|caller| Write::Renew(caller.renewal(Fence::FIRST)))).await;
    scene.pass(2 * LEASE).await;
    assert_eq!(all_overdue(store).await.len(), 2, "the undamaged ones are found");
    let done = |caller: &ScenarioCaller| caller.answers(Fence::FIRST, outcome(200, "done"));
    check(callers.each_ref().map(|caller| Write::Settle(done(caller)))).await;
    check_load::<B>(&scene, &callers, expected).await;
    assert_eq!(stored(store, callers[0].id()).await.tag(), StateTag::Completed);
}

/// The middle one is refused, on every handle; the others are served.
async fn check_load<B: Backend>(
    scene: &StoreScene<B>,
    callers: &[ScenarioCaller; 3],
    expected: fn(&StoreError) -> bool,
) {
    let other = scene.open().await;
    for store in [&scene.store, &other] {
        let loaded = store.load(callers.iter().map(ScenarioCaller::id).collect()).await;
        for (at, loaded) in loaded.into_iter().enumerate() {
            match loaded {
                Ok(loaded) => assert!(at != 1 && loaded.record.is_some(), "damage was served"),
                Err(error) => assert!(at == 1 && expected(&error), "at {at}: {error:?}"),
            }
        }
    }
}

fn is_damaged(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged(_))
}

fn is_too_new(error: &StoreError) -> bool {
    matches!(error, StoreError::TooNew(_))
}
