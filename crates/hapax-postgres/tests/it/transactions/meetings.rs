//! Others on the same key: leased owners, prepared transactions, whoever came in between, and a server that
//! ends the session.

use hapax_core::{AttemptEnd, Recovery, transaction::TransactionAnswer};
use hapax_engine::{
    Admission, Engine,
    transactional::{InTransactionError, TransactionOptions},
};

use super::{
    doors::Door,
    records::{ask, engine},
    through_every_door,
    world::{World, answer, is_replayed, is_stored, outcome, pay},
};
use crate::backend::Postgres;

through_every_door!(
    an_owner_that_claims_while_a_transaction_is_at_work_keeps_the_key,
    a_record_that_comes_between_a_failure_and_its_keeping_is_the_answer,
    a_spent_record_that_is_claimed_meanwhile_is_not_written_over,
    a_session_that_ends_in_the_middle_leaves_nothing,
    savepoints_of_the_work_are_its_own,
    a_prepared_transaction_is_waited_for,
);

/// Claims the key under a lease, as a gateway would.
async fn claim<D: Door>(world: &World<D>, engine: &Engine) -> hapax_engine::Permit {
    let begun = engine.begin(&ask(world, "k", Recovery::Hold).await).await.unwrap();
    let Admission::Execute(permit) = begun else { panic!("{begun:?}") };
    permit
}

async fn an_owner_that_claims_while_a_transaction_is_at_work_keeps_the_key<D: Door>() {
    let world = World::<D>::new().await;
    let engine = engine(&world);
    let (request, other) = (ask(&world, "k", Recovery::Hold).await, engine.clone());
    let (keep, kept) = tokio::sync::mpsc::unbounded_channel();
    let met = world.run("k", move |mut tx, key| {
        let (request, other, keep) = (request.clone(), other.clone(), keep.clone());
        async move {
            pay::<D>(&mut tx, &key).await?;
            if let Admission::Execute(permit) = other.begin(&request).await? {
                keep.send(permit)?;
            }
            Ok(answer(201))
        }
    });
    let met = met.await;
    let is_busy = matches!(met, Err(InTransactionError::Refused(TransactionAnswer::Busy { .. })));
    assert!(is_busy, "{met:?}");
    assert_eq!((world.payments().await, world.events().await, world.calls()), (0, 0, 1));
    let mut kept = kept;
    let permit = kept.recv().await.unwrap();
    permit.settle(AttemptEnd::completed(outcome(202))).await.unwrap();
    let replayed = world.pay("k", 201).await;
    assert!(is_replayed(&replayed), "{replayed:?}");
    assert_eq!(replayed.unwrap().outcome, outcome(202));
}

async fn a_record_that_comes_between_a_failure_and_its_keeping_is_the_answer<D: Door>() {
    let world = World::<D>::new().await;
    let engine = engine(&world);
    let (request, other) = (ask(&world, "k", Recovery::Hold).await, engine.clone());
    let met = world.run("k", move |mut tx, key| {
        let (request, other) = (request.clone(), other.clone());
        async move {
            pay::<D>(&mut tx, &key).await?;
            if let Admission::Execute(permit) = other.begin(&request).await? {
                permit.settle(AttemptEnd::completed(outcome(202))).await?;
            }
            Ok(answer(402))
        }
    });
    let met = met.await;
    assert!(is_replayed(&met), "{met:?}");
    assert_eq!(met.unwrap().outcome, outcome(202));
    assert_eq!((world.payments().await, world.records().await, world.calls()), (0, 1, 1));
}

async fn a_spent_record_that_is_claimed_meanwhile_is_not_written_over<D: Door>() {
    let world = World::<D>::new().await;
    let engine = engine(&world);
    claim(&world, &engine).await.give_back().await.unwrap();
    let (request, other) = (ask(&world, "k", Recovery::Hold).await, engine.clone());
    let met = world.run("k", move |mut tx, key| {
        let (request, other) = (request.clone(), other.clone());
        async move {
            assert_eq!(tx.attempt().fence.get(), 2);
            pay::<D>(&mut tx, &key).await?;
            if let Admission::Execute(permit) = other.begin(&request).await? {
                permit.settle(AttemptEnd::completed(outcome(202))).await?;
            }
            Ok(answer(201))
        }
    });
    let met = met.await;
    assert!(is_replayed(&met), "{met:?}");
    assert_eq!(met.unwrap().outcome, outcome(202));
    assert_eq!((world.payments().await, world.records().await, world.calls()), (0, 1, 1));
}

async fn a_session_that_ends_in_the_middle_leaves_nothing<D: Door>() {
    let world = World::<D>::new().await;
    let cut = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        D::write(&mut tx, "SELECT pg_terminate_backend(pg_backend_pid())".to_owned()).await?;
        Ok(answer(201))
    });
    assert!(cut.await.is_err());
    assert_eq!((world.payments().await, world.events().await, world.records().await), (0, 0, 0));
    let again = world.pay("k", 201).await;
    assert!(is_stored(&again), "{again:?}");
    assert_eq!((world.payments().await, world.events().await, world.records().await), (1, 1, 1));
}

async fn savepoints_of_the_work_are_its_own<D: Door>() {
    let world = World::<D>::new().await;
    let paid = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        for text in [
            "SAVEPOINT hapax",
            "INSERT INTO payments (key) VALUES ('taken back')",
            "ROLLBACK TO hapax",
        ] {
            D::write(&mut tx, text.to_owned()).await?;
        }
        Ok(answer(201))
    });
    assert!(is_stored(&paid.await));
    assert_eq!((world.payments().await, world.events().await, world.records().await), (1, 1, 1));
    assert!(is_replayed(&world.pay("k", 201).await));
}

async fn a_prepared_transaction_is_waited_for<D: Door>() {
    let server = tokio::task::spawn_blocking(crate::tail::shared).await.unwrap();
    let postgres = Postgres::empty_on(server.url().parse().unwrap()).await;
    let world = World::<D>::on(postgres, TransactionOptions::default(), None).await;
    let other = world.postgres.client().await;
    let name = format!("hapax {}", world.postgres.name);
    let prepare = format!(
        "BEGIN; INSERT INTO payments VALUES ('k'); \
         SELECT hapax.record('acme', 'POST /pay', 'k', '{{\"amount\":100}}', 202); \
         PREPARE TRANSACTION '{name}'"
    );
    other.batch_execute(&prepare).await.unwrap();
    let busy = world.pay("k", 201).await;
    let is_busy = matches!(busy, Err(InTransactionError::Refused(TransactionAnswer::Busy { .. })));
    assert!(is_busy, "{busy:?}");
    other.batch_execute(&format!("COMMIT PREPARED '{name}'")).await.unwrap();
    let replayed = world.pay("k", 201).await.unwrap();
    assert_eq!((replayed.outcome.status(), world.payments().await, world.calls()), (202, 1, 0));
}
