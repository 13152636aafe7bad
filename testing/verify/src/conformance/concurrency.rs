//! Races: many writers over two handles, and exactly one of them wins.

use std::{collections::HashMap, sync::Arc};

use hapax_core::{
    Fence, OperationId, Owner, Recovery, State, StateTag, Store,
    limits::BATCH_WRITES_MAX,
    store::{Claim, Over, Settle, Settlement, Write, Written},
};
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    Backend,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, commit_one, complete, enter, give_up, onlook,
        outcome, stored,
    },
};

const KEYS: usize = 1000;
const DUPLICATES: usize = 200;
const RACERS: usize = 16;
const ROUNDS: usize = 25;

const _: () = assert!(KEYS <= BATCH_WRITES_MAX);

/// Two hundred simultaneous duplicates of each of a thousand keys have one winner per key.
pub async fn many_duplicates_of_many_keys_have_one_winner_each<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let salt = scene.store.salt();
    let claims: Arc<Vec<Claim>> = Arc::new(
        (0..KEYS).map(|at| ScenarioCaller::new(&format!("key {at}")).first_claim(salt)).collect(),
    );
    let racers = (0..DUPLICATES).map(|racer| {
        let claims = Arc::clone(&claims);
        move |store: Arc<B::Store>| async move {
            let owner = Owner(i64::try_from(racer).unwrap());
            let own = |claim: &Claim| Write::Claim(Claim { owner, ..claim.clone() });
            let mut batch: Vec<_> = claims.iter().map(own).collect();
            fastrand::Rng::with_seed(racer as u64).shuffle(&mut batch);
            let ids: Vec<_> = batch.iter().map(Write::id).collect();
            let claimed = store.commit(batch).await;
            assert_eq!(claimed.len(), KEYS);
            let answers = ids.into_iter().zip(claimed);
            let won = answers.filter_map(|(id, claimed)| match claimed.unwrap() {
                Written::Done { .. } => Some(id),
                Written::Refused { record, .. } => {
                    assert_eq!(record.unwrap().operation.id(), id);
                    None
                }
            });
            won.map(|id| (id, owner)).collect::<Vec<_>>()
        }
    });
    let scene = Arc::new(scene);
    let wins: Vec<(OperationId, Owner)> =
        race(&scene, racers).await.into_iter().flatten().collect();
    assert_eq!(wins.len(), KEYS, "one winner for each key");
    let winners: HashMap<_, _> = wins.into_iter().collect();
    assert_eq!(winners.len(), KEYS, "each winner of another key");
    for loaded in scene.open().await.load(winners.keys().copied().collect()).await {
        let record = loaded.unwrap().record.unwrap();
        assert_eq!(winners[&record.operation.id()], record.owner);
    }
}

/// Of racing takeovers of one abandoned record exactly one wins, time after time.
pub async fn racing_takeovers_have_one_winner<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    let caller = ScenarioCaller::new("raced").recovering(Recovery::Resend);
    let mut fence = enter(&scene.store, &caller).await;
    for _ in 0..ROUNDS {
        scene.pass(LEASE).await;
        let over = Over::Abandoned(stored(&scene.store, caller.id()).await.stamp());
        fence = fence.next();
        let base = Claim { over, fence, ..caller.first_claim(scene.store.salt()) };
        let racers = (0..RACERS).map(|racer| {
            let owner = Owner(i64::try_from(racer).unwrap());
            let claim = Claim { owner, ..base.clone() };
            move |store: Arc<B::Store>| async move {
                let won = matches!(claim_one(&*store, claim).await, Written::Done { .. });
                won.then_some(owner)
            }
        });
        let winners: Vec<_> = race(&scene, racers).await.into_iter().flatten().collect();
        let found = stored(&scene.store, caller.id()).await;
        assert_eq!((winners, found.fence), (vec![found.owner], fence));
    }
}

/// A sweeper that gives the key back and its owner that completes it: exactly one of them counts.
pub async fn a_release_and_a_completion_exclude_each_other<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    for round in 0..ROUNDS {
        let caller = ScenarioCaller::new(&format!("round {round}")).recovering(Recovery::Resend);
        let fence = enter(&scene.store, &caller).await;
        scene.pass(LEASE).await;
        let seen = stored(&scene.store, caller.id()).await;
        let release = onlook(&seen, Settlement::Released);
        let complete = caller.answers(fence, outcome(200, "done"));
        let racers = [release.clone(), complete, release].map(settler::<B>);
        let done = race(&scene, racers).await;
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "exactly one transition");
        let expected = if done[1] { StateTag::Completed } else { StateTag::Released };
        assert_eq!(stored(&scene.store, caller.id()).await.tag(), expected);
    }
}

/// Sweepers that mark a record in doubt and its owner that completes it: the truth stays.
pub async fn a_doubt_never_hides_a_completion<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    for round in 0..ROUNDS {
        let caller = ScenarioCaller::new(&format!("round {round}"));
        let fence = enter(&scene.store, &caller).await;
        scene.pass(LEASE).await;
        let seen = stored(&scene.store, caller.id()).await;
        let complete = caller.answers(fence, outcome(200, "truth"));
        let racers = [give_up(&seen), complete, give_up(&seen)].map(settler::<B>);
        let done = race(&scene, racers).await;
        assert!(done[1], "its owner was not followed");
        assert!(!(done[0] && done[2]), "one doubt at most");
        let found = stored(&scene.store, caller.id()).await;
        assert_eq!(found.outcome(), Some(&outcome(200, "truth")));
    }
}

/// A sign of life and an onlooker that saw the old lease: exactly one of them counts.
pub async fn a_renewal_and_an_onlooker_exclude_each_other<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    let other = Arc::new(scene.open().await);
    for round in 0..ROUNDS {
        let caller = ScenarioCaller::new(&format!("round {round}"));
        let fence = enter(&scene.store, &caller).await;
        scene.pass(LEASE).await;
        let seen = stored(&scene.store, caller.id()).await;
        let renewal = Write::Renew(caller.renewal(fence));
        let sweeper = tokio::spawn(settler::<B>(give_up(&seen))(Arc::clone(&other)));
        let renewed = commit_one(&scene.store, renewal).await.unwrap();
        let renewed = matches!(renewed, Written::Done { .. });
        assert_ne!(renewed, sweeper.await.unwrap());
        let expected = if renewed { StateTag::Running } else { StateTag::InDoubt };
        assert_eq!(stored(&scene.store, caller.id()).await.tag(), expected);
    }
}

/// Of two answers one attempt gives at once, one is stored and stays.
pub async fn of_two_answers_at_once_one_is_stored<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    for round in 0..ROUNDS {
        let caller = ScenarioCaller::new(&format!("round {round}"));
        let fence = enter(&scene.store, &caller).await;
        let texts: Vec<_> = (0..RACERS).map(|racer| racer.to_string()).collect();
        let racers =
            texts.iter().map(|text| settler::<B>(caller.answers(fence, outcome(200, text))));
        let done = race(&scene, racers).await;
        let winners: Vec<_> = (0..RACERS).filter(|racer| done[*racer]).collect();
        assert_eq!(winners.len(), 1);
        let found = stored(&scene.store, caller.id()).await;
        assert_eq!(found.outcome(), Some(&outcome(200, &texts[winners[0]])));
    }
}

/// Retries of an expired key while it is being purged: one of them executes, and stays.
pub async fn a_purge_never_removes_a_new_life<B: Backend>() {
    let scene = Arc::new(StoreScene::<B>::new().await);
    for round in 0..ROUNDS {
        let caller = ScenarioCaller::new(&format!("round {round}"));
        complete(&scene.store, &caller, "old").await;
        scene.pass(WINDOW).await;
        let spent = stored(&scene.store, caller.id()).await.stamp();
        let fresh = caller.clone().first_claim(scene.store.salt());
        let anew = Claim { over: Over::Spent(spent), fence: spent.fence.next(), ..fresh.clone() };
        let racers = (0..RACERS).map(|racer| {
            let owner = Owner(100 + i64::try_from(racer).unwrap());
            let (fresh, anew) = (fresh.clone(), anew.clone());
            move |store: Arc<B::Store>| async move {
                if racer % 4 == 0 {
                    store.purge(1000).await.unwrap();
                    return None;
                }
                let won = match claim_one(&*store, Claim { owner, ..anew }).await {
                    Written::Done { .. } => true,
                    Written::Refused { record: Some(_), .. } => false,
                    Written::Refused { record: None, .. } => {
                        let claim = Claim { owner, ..fresh };
                        matches!(claim_one(&*store, claim).await, Written::Done { .. })
                    }
                };
                won.then_some(owner)
            }
        });
        let winners: Vec<_> = race(&scene, racers).await.into_iter().flatten().collect();
        let found = stored(&scene.store, caller.id()).await;
        assert_eq!(winners, vec![found.owner], "one new life, and it is the stored one");
        assert!(matches!(found.state, State::Running { .. }));
        assert!(found.fence == Fence::FIRST || found.fence == spent.fence.next());
    }
}

/// Starts everyone at the same moment, in turn on one of two handles.
async fn race<B, R, F, T>(scene: &Arc<StoreScene<B>>, racers: impl IntoIterator<Item = R>) -> Vec<T>
where
    B: Backend,
    R: FnOnce(Arc<B::Store>) -> F,
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let handles = [Arc::new(scene.open().await), Arc::new(scene.open().await)];
    let runs: Vec<_> = racers
        .into_iter()
        .enumerate()
        .map(|(at, racer)| racer(Arc::clone(&handles[at % handles.len()])))
        .collect();
    let start = Arc::new(Barrier::new(runs.len()));
    let mut tasks = JoinSet::new();
    for (at, run) in runs.into_iter().enumerate() {
        let start = Arc::clone(&start);
        tasks.spawn(async move {
            start.wait().await;
            (at, run.await)
        });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn settler<B: Backend>(
    settle: Settle,
) -> impl FnOnce(Arc<B::Store>) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> {
    move |store| {
        Box::pin(async move {
            let settled = commit_one(&*store, Write::Settle(settle)).await.unwrap();
            matches!(settled, Written::Done { .. })
        })
    }
}

async fn claim_one<S: Store>(store: &S, claim: Claim) -> Written {
    commit_one(store, Write::Claim(claim)).await.unwrap()
}
