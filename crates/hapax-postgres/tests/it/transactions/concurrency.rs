//! Several at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hapax_core::transaction::TransactionAnswer;
use hapax_engine::transactional::{InTransactionError, TransactionOptions};
use hapax_postgres::transaction::Isolation;
use tokio::sync::Semaphore;

use crate::functions::pooled::pool_keeping_statements;

use super::{
    doors::Door,
    through_every_door,
    world::{World, answer, is_replayed, is_stored, options, pay, somebody_waits},
};

through_every_door!(
    of_sixteen_duplicates_one_runs_at_every_isolation_level,
    of_sixteen_duplicates_behind_a_pooler_one_runs,
    a_duplicate_waits_for_the_first_and_is_answered_alike,
    when_the_first_rolls_back_the_second_runs,
    a_duplicate_that_waited_long_enough_is_told_to_come_back,
    transactions_in_each_others_way_are_tried_again,
    keys_that_lie_side_by_side_are_in_nobodys_way,
    a_caller_that_leaves_does_not_stop_the_work,
);

pub(super) const LEVELS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

async fn of_sixteen_duplicates_one_runs_at_every_isolation_level<D: Door>() {
    for level in LEVELS {
        let world = World::<D>::with(options(), Some(level)).await;
        one_of_sixteen_runs(Arc::new(world), level).await;
    }
}

async fn of_sixteen_duplicates_behind_a_pooler_one_runs<D: Door>() {
    for level in LEVELS {
        let world = World::<D>::with(options(), Some(level)).await;
        let (_pooler, config) = pool_keeping_statements(&world.postgres).await;
        let world = Arc::new(world.through(&config, Some(level)));
        one_of_sixteen_runs(Arc::clone(&world), level).await;
        // Sessions of the server change hands between transactions: whatever was prepared is found in each.
        for key in 0..40 {
            assert!(is_stored(&world.pay(&format!("k-{key}"), 201).await), "{level}");
        }
        let refused = world.pay("refused", 422).await;
        assert!(is_stored(&refused), "{level}: {refused:?}");
        assert_eq!((world.payments().await, world.events().await), (41, 41), "{level}");
    }
}

/// Sixteen duplicates at once: one pays, the others are answered from its record.
pub(super) async fn one_of_sixteen_runs<D: Door>(world: Arc<World<D>>, level: Isolation) {
    let callers = (0..16).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.pay("k", 201).await })
    });
    let callers: Vec<_> = callers.collect();
    let mut stored = 0;
    for caller in callers {
        let answered = caller.await.unwrap();
        assert!(is_stored(&answered) || is_replayed(&answered), "{level}: {answered:?}");
        stored += u32::from(is_stored(&answered));
    }
    assert_eq!((stored, world.payments().await, world.events().await), (1, 1, 1), "{level}");
}

/// Starts work on the key that pays and then waits to be let go, and waits until it has paid.
pub(super) async fn hold<D: Door>(
    world: &Arc<World<D>>,
    status: u16,
) -> (Arc<Semaphore>, tokio::task::JoinHandle<bool>) {
    let (paid, let_go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (world, told, gate) = (Arc::clone(world), Arc::clone(&paid), Arc::clone(&let_go));
    let holding = tokio::spawn(async move {
        let held = world.run("k", move |mut tx, key| {
            let (told, gate) = (Arc::clone(&told), Arc::clone(&gate));
            async move {
                pay::<D>(&mut tx, &key).await?;
                told.add_permits(1);
                gate.acquire().await?.forget();
                Ok(answer(status))
            }
        });
        is_stored(&held.await)
    });
    paid.acquire().await.unwrap().forget();
    (let_go, holding)
}

async fn a_duplicate_waits_for_the_first_and_is_answered_alike<D: Door>() {
    let world = Arc::new(World::<D>::with(options(), None).await);
    let (let_go, first) = hold(&world, 201).await;
    let own = Arc::clone(&world);
    let second = tokio::spawn(async move { own.pay("k", 201).await });
    somebody_waits(&world).await;
    let_go.add_permits(1);
    assert!(first.await.unwrap());
    assert!(is_replayed(&second.await.unwrap()));
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 1));
}

async fn when_the_first_rolls_back_the_second_runs<D: Door>() {
    let world = Arc::new(World::<D>::with(options(), None).await);
    let (let_go, first) = hold(&world, 503).await;
    let own = Arc::clone(&world);
    let second = tokio::spawn(async move { own.pay("k", 201).await });
    somebody_waits(&world).await;
    let_go.add_permits(1);
    assert!(!first.await.unwrap());
    assert!(is_stored(&second.await.unwrap()));
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 2));
}

async fn a_duplicate_that_waited_long_enough_is_told_to_come_back<D: Door>() {
    let wait = Duration::from_millis(50);
    let options = TransactionOptions { wait, ..TransactionOptions::default() };
    let world = Arc::new(World::<D>::with(options, None).await);
    let (let_go, first) = hold(&world, 201).await;
    let second = world.pay("k", 201).await;
    assert!(
        matches!(second, Err(InTransactionError::Refused(TransactionAnswer::Busy { .. }))),
        "{second:?}"
    );
    let_go.add_permits(1);
    assert!(first.await.unwrap());
    assert!(is_replayed(&world.pay("k", 201).await));
}

async fn transactions_in_each_others_way_are_tried_again<D: Door>() {
    let world = World::<D>::with(options(), Some(Isolation::Serializable)).await;
    let world = Arc::new(world);
    let client = world.postgres.client().await;
    let setup = "CREATE TABLE stock (left_over int NOT NULL); INSERT INTO stock VALUES (1000)";
    client.batch_execute(setup).await.unwrap();
    let callers = (0..8).map(|caller| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let key = format!("k{caller}");
            let taken = world.run(&key, |mut tx, _| async move {
                D::write(&mut tx, "SELECT left_over FROM stock".to_owned()).await?;
                D::write(&mut tx, "UPDATE stock SET left_over = left_over - 1".to_owned()).await?;
                Ok(answer(201))
            });
            is_stored(&taken.await)
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut taken = 0;
    for caller in callers {
        taken += i64::from(caller.await.unwrap());
    }
    assert!(taken >= 4, "only {taken} of 8 got through");
    assert!(world.calls() > 8, "nobody was in anybody's way");
    let left = world.postgres.number("SELECT left_over::int8 FROM stock").await;
    assert_eq!((left, world.records().await), (1000 - taken, taken));
}

async fn keys_that_lie_side_by_side_are_in_nobodys_way<D: Door>() {
    for isolation in [Some(Isolation::Serializable), None] {
        let world = World::<D>::with(options(), isolation).await;
        let by_default =
            "ALTER ROLE postgres IN DATABASE {} SET default_transaction_isolation = 'serializable'";
        world.postgres.execute(&by_default.replace("{}", &world.postgres.name), &[]).await;
        let world = Arc::new(world);
        let all = Arc::new(tokio::sync::Barrier::new(8));
        let callers = (0..8).map(|caller| {
            let (world, all) = (Arc::clone(&world), Arc::clone(&all));
            let first = Arc::new(AtomicBool::new(true));
            tokio::spawn(async move {
                let key = format!("k{caller}");
                let paid = world.run(&key, move |mut tx, key| {
                    let (all, first) = (Arc::clone(&all), Arc::clone(&first));
                    async move {
                        // All of them have looked, and none has written.
                        if first.swap(false, Ordering::SeqCst) {
                            all.wait().await;
                        }
                        pay::<D>(&mut tx, &key).await?;
                        Ok(answer(201))
                    }
                });
                is_stored(&paid.await)
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert!(caller.await.unwrap());
        }
        assert_eq!((world.calls(), world.records().await), (8, 8), "{isolation:?}");
    }
}

async fn a_caller_that_leaves_does_not_stop_the_work<D: Door>() {
    let world = Arc::new(World::<D>::with(options(), None).await);
    let (paid, let_go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (told, gate) = (Arc::clone(&paid), Arc::clone(&let_go));
    let leaving = world.run("k", move |mut tx, key| {
        let (told, gate) = (Arc::clone(&told), Arc::clone(&gate));
        async move {
            pay::<D>(&mut tx, &key).await?;
            told.add_permits(1);
            gate.acquire().await?.forget();
            Ok(answer(201))
        }
    });
    tokio::select! {
        answered = leaving => panic!("it was held: {answered:?}"),
        paid = paid.acquire() => paid.unwrap().forget(),
    }
    let_go.add_permits(1);
    assert!(is_replayed(&world.pay("k", 201).await));
    assert_eq!((world.payments().await, world.calls()), (1, 1));
}
