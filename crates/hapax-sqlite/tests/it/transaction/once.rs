//! The rusqlite door: what is committed, what is taken back, and what whoever comes second is told.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Barrier,
    thread,
    time::Duration,
};

use hapax_core::{
    AnswerMeaning, AttemptAnswer, Doubt, Fence, Fingerprint, Outcome, Policy, Recovery, RetainFrom,
    Retention, Store as _, StoreError,
    store::{Claim, Entry, Settle, Settlement, Write, Written},
    transaction::TransactionAnswer,
};
use hapax_sqlite::{Fate, OnceRequest, TransactionOnceError, emit, once, transaction};
use rusqlite::Connection;

use super::shop::{answer, failing_at, insert, open, pay, payments, records, unit};
use crate::{
    backend::Sqlite,
    calls::{claim, complete, completion, first_claim, load},
};

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

#[track_caller]
fn refusal<T: std::fmt::Debug, E: std::fmt::Debug>(
    refused: Result<T, TransactionOnceError<E>>,
) -> TransactionAnswer {
    match refused {
        Err(TransactionOnceError::Refused(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_and_outcome_are_committed_together_and_replayed_after() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    let first = pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    assert!(matches!(first.fate, Fate::Stored { .. }), "{first:?}");
    let second = pay(&mut shop, &unit(&sqlite, "a"), 500).expect("it is replayed");
    assert!(matches!(second.fate, Fate::Replayed { .. }), "{second:?}");
    assert_eq!(second.outcome, Outcome::bare(201));
    assert_eq!((payments(&shop), records(&shop, "completed")), (1, 1));
}

#[test]
fn a_final_error_takes_the_writes_back_and_is_replayed() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    for _ in 0..2 {
        let answered = pay(&mut shop, &unit(&sqlite, "a"), 402).expect("it is answered");
        assert_eq!(answered.outcome.status(), 402);
    }
    assert_eq!((payments(&shop), records(&shop, "failed")), (0, 1));
}

#[test]
fn what_may_be_tried_again_leaves_nothing_behind() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    for status in [500, 503, 429, 401] {
        let answered = pay(&mut shop, &unit(&sqlite, "a"), status).expect("it runs");
        assert_eq!(answered.fate, Fate::RolledBack);
    }
    let failed = once(&mut shop, &unit(&sqlite, "a"), |tx| {
        insert(tx, "a").expect("written");
        Err("the card reader is on fire")
    });
    assert!(
        matches!(failed, Err(TransactionOnceError::Failed("the card reader is on fire"))),
        "{failed:?}"
    );
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        once(&mut shop, &unit(&sqlite, "a"), |tx| -> Result<AttemptAnswer, ()> {
            insert(tx, "a").expect("written");
            panic!("this work panics")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((payments(&shop), shop.is_autocommit()), (0, true));
    let rows = "SELECT count(*) FROM hapax_claims";
    assert_eq!(shop.query_row(rows, [], |row| row.get(0)), Ok(0), "the key is free");
    pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    assert_eq!(payments(&shop), 1);
}

#[test]
fn what_an_answer_means_is_the_works_word_whatever_its_status() {
    let rows = [
        (AnswerMeaning::Completed, "completed", 1),
        (AnswerMeaning::Failed, "failed", 0),
        (AnswerMeaning::NotDone, "released", 0),
        (AnswerMeaning::TakenForNotDone, "released", 0),
        (AnswerMeaning::Inconclusive, "released", 0),
    ];
    for (meaning, state, paid) in rows {
        for status in [0, 200, 303, 404, 429, 500, 503] {
            let sqlite = Sqlite::new();
            let mut shop = open(&sqlite);
            let answered = once(&mut shop, &unit(&sqlite, "a"), |tx| {
                insert(tx, "a")?;
                let outcome = Outcome::bare(status);
                Ok::<_, rusqlite::Error>(AttemptAnswer { outcome, meaning })
            });
            assert_eq!(answered.expect("it runs").outcome, Outcome::bare(status));
            assert_eq!(payments(&shop), paid, "{meaning:?} {status}");
            let kept = i64::from(state != "released");
            assert_eq!(records(&shop, state), kept, "{meaning:?} {status}");
        }
    }
}

#[test]
fn another_request_under_the_key_is_refused_and_does_not_run() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    let fingerprint = Fingerprint::from_bytes([8; Fingerprint::BYTES]);
    let other = OnceRequest { fingerprint, ..unit(&sqlite, "a") };
    assert!(matches!(refusal(pay(&mut shop, &other, 201)), TransactionAnswer::Mismatch(_)));
    assert_eq!(payments(&shop), 1);
}

#[test]
fn past_retention_the_operation_is_new_and_its_fence_grows() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    for fence in [1, 2] {
        pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
        let found = "SELECT fence FROM hapax_claims";
        assert_eq!(shop.query_row(found, [], |row| row.get(0)), Ok(fence));
        sqlite.move_clock(DAY);
    }
    assert_eq!(payments(&shop), 2);
}

#[test]
fn past_retention_a_tombstone_says_that_it_is_gone() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    let retention = Retention {
        window: Duration::from_secs(60),
        from: RetainFrom::Creation,
        tombstone: Duration::from_secs(60),
    };
    let policy = Policy::default();
    let policy = Policy::new(policy.lease(), retention, policy.recovery());
    let unit = OnceRequest { policy: policy.expect("valid"), ..unit(&sqlite, "a") };
    pay(&mut shop, &unit, 201).expect("it runs");
    sqlite.move_clock(61_000_000);
    assert!(matches!(refusal(pay(&mut shop, &unit, 201)), TransactionAnswer::Gone { .. }));
    sqlite.move_clock(61_000_000);
    pay(&mut shop, &unit, 201).expect("it runs");
    assert_eq!(payments(&shop), 2);
}

#[test]
fn whoever_runs_it_is_told_the_same_end_of_retention_as_whoever_comes_again() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    let retention = Retention { from: RetainFrom::Completion, ..Policy::default().retention() };
    let policy = Policy::default();
    let policy = Policy::new(policy.lease(), retention, policy.recovery());
    let unit = OnceRequest { policy: policy.expect("valid"), ..unit(&sqlite, "a") };
    let ran = once(&mut shop, &unit, |tx| {
        sqlite.move_clock(1_000_000);
        insert(tx, "a")?;
        Ok::<_, rusqlite::Error>(answer(201))
    });
    let Fate::Stored { expires_at: told } = ran.expect("it runs").fate else { panic!("it ran") };
    let again = pay(&mut shop, &unit, 201).expect("it is replayed");
    assert_eq!(again.fate, Fate::Replayed { expires_at: told });
}

/// What a leased attempt of the store in the same file left, and what a transaction makes of it.
#[tokio::test]
async fn records_of_the_store_in_the_same_file_are_respected() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    let store = sqlite.store();
    let begin = async |key: &str, recovery| {
        let entry = Entry::Run { lease: Duration::from_secs(30), request: None };
        let claim = Claim { recovery, entry, ..first_claim(key) };
        store.commit(vec![Write::Claim(claim)]).await;
    };
    for key in ["running", "done", "doubt"] {
        claim(&store, key).await.expect("written");
    }
    begin("resend", Recovery::Resend).await;
    begin("probe", Recovery::Probe).await;
    complete(&store, "done", b"paid").await.expect("written");
    let to = Settlement::InDoubt(Doubt::Unanswered);
    let doubt = Settle { to, ..completion("doubt", b"") };
    store.commit(vec![Write::Settle(doubt)]).await;

    let answer = refusal(pay(&mut shop, &unit(&sqlite, "running"), 201));
    let thirty = Duration::from_secs(30);
    assert!(
        matches!(answer, TransactionAnswer::Busy { retry_after } if retry_after == thirty),
        "{answer:?}"
    );
    let replay = pay(&mut shop, &unit(&sqlite, "done"), 500).expect("it is replayed");
    assert!(matches!(replay.fate, Fate::Replayed { .. }));
    let answer = refusal(pay(&mut shop, &unit(&sqlite, "doubt"), 201));
    assert!(
        matches!(answer, TransactionAnswer::InDoubt { doubt: Doubt::Unanswered }),
        "{answer:?}"
    );

    sqlite.move_clock(31_000_000);
    let vanished =
        |answer| matches!(answer, TransactionAnswer::InDoubt { doubt: Doubt::OwnerVanished });
    assert!(vanished(refusal(pay(&mut shop, &unit(&sqlite, "running"), 201))));
    assert!(vanished(refusal(pay(&mut shop, &unit(&sqlite, "probe"), 201))));
    assert_eq!(payments(&shop), 0);
    pay(&mut shop, &unit(&sqlite, "resend"), 201).expect("it follows");
    let record = load(&store, "resend").await.expect("readable").expect("there");
    assert_eq!((record.fence, payments(&shop)), (Fence::FIRST.next(), 1));
    let late = complete(&store, "resend", b"late").await.expect("answered");
    assert!(matches!(late, Written::Refused { .. }), "the old owner has no say: {late:?}");
}

#[tokio::test]
async fn the_store_in_the_same_file_replays_what_a_transaction_stored() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    let record = load(&sqlite.store(), "a").await.expect("readable").expect("there");
    assert_eq!(record.outcome().map(Outcome::status), Some(201));
}

#[test]
fn sixteen_threads_with_one_key_make_one_payment() {
    const THREADS: usize = 16;
    let (sqlite, start) = (Sqlite::new(), Barrier::new(THREADS));
    let shop = open(&sqlite);
    let stored: usize = thread::scope(|scope| {
        let run = || {
            let mut shop = open(&sqlite);
            start.wait();
            let answered = pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it is answered");
            assert_eq!(answered.outcome, Outcome::bare(201));
            usize::from(matches!(answered.fate, Fate::Stored { .. }))
        };
        let runs: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).sum()
    });
    assert_eq!((stored, payments(&shop), records(&shop, "completed")), (1, 1, 1));
}

#[test]
fn a_lock_held_too_long_is_busy_but_replays_do_not_wait_for_it() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    pay(&mut shop, &unit(&sqlite, "done"), 201).expect("it runs");
    shop.busy_timeout(Duration::from_millis(20)).expect("set");
    let holder = sqlite.client();
    holder.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let answer = refusal(pay(&mut shop, &unit(&sqlite, "new"), 201));
    assert!(matches!(answer, TransactionAnswer::Busy { .. }), "{answer:?}");
    let replayed = pay(&mut shop, &unit(&sqlite, "done"), 201).expect("it is replayed");
    assert!(matches!(replayed.fate, Fate::Replayed { .. }));
    holder.execute_batch("ROLLBACK").expect("unlocked");
    pay(&mut shop, &unit(&sqlite, "new"), 201).expect("it runs");
}

#[test]
fn nobody_ever_sees_an_operation_while_it_runs() {
    let sqlite = Sqlite::new();
    let (mut shop, onlooker) = (open(&sqlite), open(&sqlite));
    let seen = |when: &str| {
        let rows = "SELECT count(*) FROM hapax_claims";
        assert_eq!(onlooker.query_row(rows, [], |row| row.get(0)), Ok(0), "{when}");
    };
    once(&mut shop, &unit(&sqlite, "a"), |tx| {
        seen("before its first write");
        insert(tx, "a")?;
        seen("after its last write");
        Ok::<_, rusqlite::Error>(answer(201))
    })
    .expect("it runs");
    assert_eq!(records(&onlooker, "completed"), 1);
}

#[test]
fn a_fault_before_the_commit_leaves_nothing_and_one_after_it_is_seen_through() {
    for place in transaction::PLACES {
        let sqlite = Sqlite::new();
        let mut shop = open(&sqlite);
        let faulty = OnceRequest { faults: failing_at(place), ..unit(&sqlite, "a") };
        let answered = pay(&mut shop, &faulty, 201);
        if place.ends_with("after_commit") {
            assert!(matches!(answered.expect("it committed").fate, Fate::Stored { .. }));
        } else {
            let failed = answered.expect_err("it failed");
            let nothing = matches!(failed, TransactionOnceError::Store(StoreError::Unavailable(_)));
            assert!(nothing && payments(&shop) == 0, "{place}: {failed:?}");
        }
        pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it is answered");
        assert_eq!((payments(&shop), records(&shop, "completed")), (1, 1), "{place}");
    }
}

#[test]
fn a_transaction_ended_by_hand_is_an_alarm_and_keeps_no_record() {
    for by_hand in ["COMMIT", "ROLLBACK"] {
        let sqlite = Sqlite::new();
        let mut shop = open(&sqlite);
        let alarm = once(&mut shop, &unit(&sqlite, "a"), |tx| {
            tx.execute_batch(by_hand)?;
            Ok::<_, rusqlite::Error>(answer(201))
        });
        let Err(TransactionOnceError::Store(StoreError::Damaged(cause))) = alarm else {
            panic!("{alarm:?}")
        };
        assert!(cause.to_string().contains("leave COMMIT and ROLLBACK to Hapax"), "{cause}");
        assert_eq!(records(&shop, "completed"), 0);
    }
}

#[test]
fn a_constraint_that_fails_at_the_commit_takes_everything_back() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    shop.execute_batch(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE refunds (payment INTEGER REFERENCES payments DEFERRABLE INITIALLY DEFERRED)",
    )
    .expect("created");
    let refused = once(&mut shop, &unit(&sqlite, "a"), |tx| {
        tx.execute("INSERT INTO refunds VALUES (404)", [])?;
        Ok::<_, rusqlite::Error>(answer(201))
    });
    assert!(
        matches!(refused, Err(TransactionOnceError::Store(StoreError::Unavailable(_)))),
        "{refused:?}"
    );
    assert_eq!((records(&shop, "completed"), shop.is_autocommit()), (0, true));
}

#[test]
fn a_record_that_cannot_be_read_is_neither_run_nor_written_over() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    shop.execute("UPDATE hapax_ends SET state = 99", []).expect("damaged");
    let refused = pay(&mut shop, &unit(&sqlite, "a"), 201);
    assert!(
        matches!(refused, Err(TransactionOnceError::Store(StoreError::Damaged(_)))),
        "{refused:?}"
    );
    assert_eq!(payments(&shop), 1);
}

#[test]
fn the_mode_and_the_marks_of_the_file_stay_with_their_owner() {
    let sqlite = Sqlite::new();
    let mut shop = sqlite.client();
    shop.execute_batch("CREATE TABLE payments (key TEXT); PRAGMA user_version = 7").expect("made");
    hapax_sqlite::migrate(&mut shop).expect("migrated");
    pay(&mut shop, &unit(&sqlite, "a"), 201).expect("it runs");
    let pragma = |name| -> String {
        let read = |row: &rusqlite::Row<'_>| row.get(0).map(|value: rusqlite::types::Value| value);
        format!("{:?}", shop.pragma_query_value(None, name, read).expect("read"))
    };
    assert_eq!(pragma("journal_mode"), "Text(\"delete\")");
    assert_eq!(pragma("user_version"), "Integer(7)");
}

#[test]
fn events_are_published_only_with_what_they_tell_of() {
    let sqlite = Sqlite::new();
    let mut shop = open(&sqlite);
    for (key, status) in [("a", 201), ("b", 402), ("c", 500), ("d", 201)] {
        once(&mut shop, &unit(&sqlite, key), |tx| {
            insert(tx, key)?;
            let event = hapax_core::Event::new("payment.completed", key, "{}").expect("valid");
            emit(tx, &event.header("trace", "\"42\"").expect("valid"))?;
            Ok::<_, rusqlite::Error>(answer(status))
        })
        .expect("it runs");
    }
    assert_eq!(published(&shop), ["1 payment.completed a \"42\"", "2 payment.completed d \"42\""]);
}

fn published(shop: &Connection) -> Vec<String> {
    let sql = "SELECT position || ' ' || topic || ' ' || key || ' ' || (headers ->> 'trace')
               FROM hapax_outbox WHERE payload = x'7b7d' AND length(id) = 36
               AND abs(at / 1000000 - unixepoch()) < 60 ORDER BY position";
    let mut statement = shop.prepare(sql).expect("prepared");
    let rows = statement.query_map([], |row| row.get(0)).expect("read");
    rows.collect::<Result<_, _>>().expect("read")
}
