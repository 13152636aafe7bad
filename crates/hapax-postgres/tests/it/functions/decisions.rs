//! What `hapax.begin` decides is what the machine decides.

use std::time::Duration;

use hapax_core::{
    Arrival, Attempt, AttemptEnd, Body, Decision, Doubt, Fence, Fingerprint, Outcome, Owner,
    Policy, Record, Recovery, RequestParts, RunMode, State, StateTag, Store as _, Timestamp, apply,
    decide, settle,
    store::{Claim, Loaded, Over},
    transaction::{TransactionAnswer, enter},
};
use hapax_verify::conformance::{
    Backend as _,
    decisions::{ArrivalStage, Visit},
};

use super::{Begun, Service, operation, record};
use crate::backend::Postgres;

const ROWS: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn every_cell_of_the_decision_table_is_decided_as_by_the_machine() {
    for stage in ArrivalStage::ALL {
        stage.call_on::<Postgres>(async |visit| compare(stage, &visit).await).await;
    }
}

/// Begins in a transaction, compares the answer with the machine's, commits, and compares what is
/// then stored with what the machine's claim makes of what was stored.
async fn compare(stage: ArrivalStage, visit: &Visit<'_, Postgres>) {
    let context = format!("at {stage:?} under {:?}, same: {}", visit.recovery, visit.same);
    let id = visit.arrival.operation.id();
    let service = Service::new(visit.backend).await;
    service.run("BEGIN").await;
    let owner = Owner(service.number("SELECT pg_current_xact_id()::text::int8").await);
    let arrival = Arrival { owner, mode: RunMode::Run { request: None }, ..visit.arrival.clone() };
    let Loaded { now, record: before } = visit.store.load(vec![id]).await.remove(0).unwrap();
    let before = before.map(|record| *record);
    let decision = decide(now, &arrival, before.as_ref(), &Policy::default());
    let expected = enter(now, decision, before.as_ref());

    let operation = &arrival.operation;
    let arguments = format!(
        "'{}', '{}', '{}', '{}'",
        operation.tenant().as_str(),
        operation.scope().as_str(),
        operation.key().as_str(),
        visit.body
    );
    let begun = service.ask(&arguments).await.unwrap();
    assert_eq!(begun.operation.replace('-', ""), id.to_string(), "{context}");
    service.run("COMMIT").await;
    let Loaded { now: after, record: stored } = visit.store.load(vec![id]).await.remove(0).unwrap();
    let stored = stored.map(|record| *record);
    match expected {
        Ok(claim) => {
            let stored = stored.unwrap();
            let written = stored.changed_at;
            assert!(now <= written && written <= after, "{context}: {written} is not now");
            let expected = apply::claim(written, before.as_ref(), &claim);
            assert_eq!(Some(&stored), expected.as_ref(), "{context}");
            let told = told(&Ok(claim), now, Some(&stored));
            assert_eq!(begun, Begun { operation: begun.operation.clone(), ..told }, "{context}");
        }
        Err(answer) => {
            assert_eq!(stored, before, "{context}: an answer changed the record");
            let mut told = told(&Err(answer), now, before.as_ref());
            let late = told.retry_after.zip(begun.retry_after);
            if late.is_some_and(|(ours, theirs)| (0..=2).contains(&(ours - theirs))) {
                told.retry_after = begun.retry_after;
            }
            assert_eq!(begun, Begun { operation: begun.operation.clone(), ..told }, "{context}");
        }
    }
}

/// The answer of `hapax.begin` that says the same.
fn told(
    decision: &Result<Claim, TransactionAnswer>,
    now: Timestamp,
    about: Option<&Record>,
) -> Begun {
    let seconds = |span: Duration| i32::try_from(span.as_micros().div_ceil(1_000_000)).unwrap();
    let begun = Begun {
        decision: word(decision).to_owned(),
        operation: String::new(),
        fence: about.map(|record| record.fence.get()),
        status: None,
        headers: None,
        body: None,
        retry_after: None,
        differs: None,
        expires_at: about.map(|record| record.expires_at.as_micros()),
    };
    match decision {
        Ok(_) => Begun { decision: "execute".to_owned(), ..begun },
        Err(TransactionAnswer::Busy { retry_after }) => {
            Begun { retry_after: Some(seconds(*retry_after).max(1)), ..begun }
        }
        Err(TransactionAnswer::Mismatch(difference)) => {
            let parts = difference.parts().map(|part| part.as_str().to_owned()).collect();
            Begun { differs: Some(parts), ..begun }
        }
        Err(TransactionAnswer::Replay(record)) => {
            let outcome = record.outcome().unwrap();
            assert!(now < record.expires_at);
            let Body::Kept(body) = outcome.body() else { unreachable!("the table keeps bodies") };
            Begun {
                status: Some(outcome.status().into()),
                headers: Some("{\"content-type\": \"text/plain\"}".to_owned()),
                body: Some(body.to_vec()),
                ..begun
            }
        }
        Err(TransactionAnswer::InDoubt { .. } | TransactionAnswer::Gone { .. }) => begun,
    }
}

/// The word `hapax.decide` has for it.
fn word(decision: &Result<Claim, TransactionAnswer>) -> &'static str {
    match decision {
        Ok(Claim { over: Over::Nothing, .. }) => "nothing",
        Ok(Claim { over: Over::Spent(_), .. }) => "spent",
        Ok(Claim { over: Over::Abandoned(_), .. }) => "abandoned",
        Err(TransactionAnswer::Replay(_)) => "replay",
        Err(TransactionAnswer::Busy { .. }) => "busy",
        Err(TransactionAnswer::InDoubt { .. }) => "in_doubt",
        Err(TransactionAnswer::Mismatch(_)) => "mismatch",
        Err(TransactionAnswer::Gone { .. }) => "gone",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_records_are_decided_as_by_the_machine() {
    let seed = 0x0dec_1de5;
    let mut random = fastrand::Rng::with_seed(seed);
    let database = Postgres::empty().await;
    database.store().await;
    let rows: Vec<_> = (0..ROWS).map(|_| (draw(&mut random), random.bool())).collect();
    let now = Timestamp::from_micros(1_000);
    let column = |of: fn(&Record) -> i64| rows.iter().map(|(row, _)| of(row)).collect::<Vec<_>>();
    let answers = database
        .client()
        .await
        .query_one(
            "SELECT array_agg(hapax.decide($1, state::int2, until, expires_at, tombstone, recovery::int2, same) \
                              ORDER BY n) \
             FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::bool[]) \
                  WITH ORDINALITY AS r(state, until, expires_at, tombstone, recovery, same, n)",
            &[
                &now.as_micros(),
                &column(|row| row.tag() as i64),
                &column(|row| row.until().as_micros()),
                &column(|row| row.expires_at.as_micros()),
                &column(|row| row.tombstone.as_micros().try_into().unwrap()),
                &column(|row| row.recovery as i64),
                &rows.iter().map(|(_, same)| *same).collect::<Vec<_>>(),
            ],
        )
        .await
        .unwrap();
    let answers: Vec<Option<String>> = answers.get(0);
    assert_eq!(answers.len(), ROWS);
    for ((record, same), answer) in rows.iter().zip(answers) {
        let fingerprint = Fingerprint::from_bytes([u8::from(*same); Fingerprint::BYTES]);
        let mode = RunMode::Run { request: None };
        let operation = record.operation.clone();
        let arrival = Arrival { operation, fingerprint, owner: Owner(2), mode };
        let decision = decide(now, &arrival, Some(record), &Policy::default());
        let expected = word(&enter(now, decision, Some(record)));
        assert_eq!(answer.as_deref(), Some(expected), "seed {seed:#x}: {record:?}, same: {same}");
    }
}

/// A record whose instants lie close around the 1000th microsecond.
fn draw(random: &mut fastrand::Rng) -> Record {
    let near = |random: &mut fastrand::Rng| Timestamp::from_micros(random.i64(995..1006));
    let tag = StateTag::ALL[random.usize(..StateTag::ALL.len())];
    let outcome = Outcome::bare(200);
    Record {
        operation: operation("any"),
        fingerprint: Fingerprint::from_bytes([1; Fingerprint::BYTES]),
        fence: Fence::FIRST,
        owner: Owner(1),
        recovery: [Recovery::Resend, Recovery::Probe, Recovery::Hold][random.usize(..3)],
        created_at: Timestamp::ZERO,
        changed_at: Timestamp::ZERO,
        expires_at: near(random),
        tombstone: Duration::from_micros(random.u64(..6)),
        state: match tag {
            StateTag::Pending => {
                State::Pending { pick_up_by: near(random), request: b"later".as_slice().into() }
            }
            StateTag::Running => State::Running { lease_until: near(random), request: None },
            StateTag::Completed => State::Completed { outcome },
            StateTag::Failed => State::Failed { outcome },
            StateTag::InDoubt => State::InDoubt { doubt: Doubt::Unanswered, request: None },
            StateTag::Released => State::Released,
            StateTag::Buried => State::Buried,
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_no_version_wrote_is_not_decided_about() {
    let database = Postgres::empty().await;
    database.store().await;
    for (state, recovery) in [(0, 3), (8, 3), (2, 0), (5, 4)] {
        let text = format!(
            "SELECT count(*) FROM hapax.decide(10, {state}::int2, 5, 20, 0, {recovery}::int2, true) AS d \
             WHERE d IS NULL"
        );
        assert_eq!(database.number(&text).await, 1, "state {state}, recovery {recovery}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_operation_is_stored_as_by_the_machine_whatever_the_clock_says() {
    let (database, store) = super::shop().await;
    let service = Service::new(&database).await;
    for (key, days) in [("today", 0), ("later", 100), ("earlier", -200)] {
        database.step_clock(days * 24 * 60 * 60 * 1_000_000).await;
        let before = store.load(vec![operation(key).id()]).await.remove(0).unwrap().now;
        service.run("BEGIN").await;
        let owner = Owner(service.number("SELECT pg_current_xact_id()::text::int8").await);
        assert_eq!(service.pay(key).await, Ok(true));
        service.run("COMMIT").await;
        let Loaded { now, record } = store.load(vec![operation(key).id()]).await.remove(0).unwrap();
        let stored = *record.unwrap();
        let (begun, ended) = (stored.created_at, stored.changed_at);
        assert!(before <= begun && begun <= ended && ended <= now, "{key}: {stored:?}");

        let operation = operation(key);
        let request = RequestParts { body: b"{\"amount\": 100}", ..RequestParts::default() };
        let fingerprint = store.salt().tenant_key(operation.tenant()).fingerprint(&request);
        let mode = RunMode::Run { request: None };
        let arrival = Arrival { operation, fingerprint, owner, mode };
        let Decision::Execute(claim) = decide(begun, &arrival, None, &Policy::default()) else {
            unreachable!("an absent key must execute")
        };
        let attempt = Attempt { id: claim.operation.id(), fence: claim.fence, owner };
        let answered = AttemptEnd::completed(stored.outcome().unwrap().clone());
        let claimed = apply::claim(begun, None, &claim);
        let settle = settle(&attempt, answered, &Policy::default());
        assert_eq!(Some(stored), apply::settle(ended, claimed.as_ref(), &settle), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_end_is_in_doubt_after_the_lease_and_never_run_again() {
    let (database, store) = super::shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN").await;
    let first = service.begin("forgotten").await;
    service.run("INSERT INTO payments VALUES ('forgotten', 100); COMMIT").await;
    let begun = service.begin("forgotten").await;
    assert_eq!(begun.decision, "busy");
    assert!((1..=30).contains(&begun.retry_after.unwrap()), "{begun:?}");
    for hours in [0, 1, 48, 24 * 500] {
        database.step_clock((hours * 60 * 60 + 31) * 1_000_000).await;
        let begun = service.begin("forgotten").await;
        assert_eq!((begun.decision.as_str(), begun.fence), ("in_doubt", first.fence), "{hours}");
        store.purge(100).await.unwrap();
    }
    let stored = record(&store, operation("forgotten").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Running);
    let refused = service.refused(&format!("SELECT {}", first.finish(""))).await;
    assert_eq!(refused.code, "HX002");
}
