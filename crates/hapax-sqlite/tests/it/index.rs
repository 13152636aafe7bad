//! Wherever an operation stands in the file, it is found, by whoever asks; and nothing else is taken for it.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    time::Duration,
};

use hapax_core::{
    Fence, OperationId, Owner, StateTag, Store as _,
    store::{By, Claim, Filter, Over, Page, Settle, Settlement, Write, Written},
};
use hapax_sqlite::{Durability, OnceRequest, Options, Store, once};
use rusqlite::Connection;

use crate::{
    backend::Sqlite,
    calls::{claim, complete, completion, first_claim, load, operation},
};

/// Quick, because nothing here is about power.
fn options(sqlite: &Sqlite) -> Options {
    Options { durability: Durability::Normal, ..sqlite.options() }
}

fn small(sqlite: &Sqlite) -> Options {
    Options { keys_in_memory_max: 50, ..options(sqlite) }
}

fn open(sqlite: &Sqlite, options: Options) -> Store {
    Store::open(sqlite.path(), options).expect("it opens")
}

async fn claim_all(store: &Store, keys: impl IntoIterator<Item = String>) -> usize {
    let batch = keys.into_iter().map(|key| Write::Claim(first_claim(&key))).collect();
    let won = |answer: &Result<Written, _>| {
        matches!(answer.as_ref().expect("written"), Written::Done { .. })
    };
    store.commit(batch).await.iter().filter(|answer| won(answer)).count()
}

async fn end_all(store: &Store, keys: impl IntoIterator<Item = String>) {
    let end = |key: String| Write::Settle(completion(&key, key.as_bytes()));
    for answer in store.commit(keys.into_iter().map(end).collect()).await {
        assert!(matches!(answer, Ok(Written::Done { .. })), "{answer:?}");
    }
}

/// Claims and ends so many keys, in commits of a few hundred.
async fn fill(store: &Store, from: usize, until: usize) {
    for first in (from..until).step_by(300) {
        let keys = || (first..until.min(first + 300)).map(|key| key.to_string());
        assert_eq!(claim_all(store, keys()).await, keys().count());
        end_all(store, keys()).await;
    }
}

/// Each of these keys is there with its own answer, and those beyond are not.
async fn check(store: &Store, from: usize, until: usize) {
    let ids = (from..until + 100).map(|key| operation(&key.to_string()).id()).collect();
    for (key, loaded) in (from..).zip(store.load(ids).await) {
        let record = loaded.expect("readable").record;
        assert_eq!(record.is_some(), key < until, "{key}");
        if let Some(record) = record {
            assert_eq!(record.operation, operation(&key.to_string()));
            assert_eq!(record.tag(), StateTag::Completed, "{key}");
        }
    }
}

fn number(client: &Connection, sql: &str) -> i64 {
    client.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Whether `once` finds it finished.
fn is_replayed(connection: &mut Connection, key: &str) -> bool {
    let unit = OnceRequest::new(operation(key), first_claim(key).fingerprint);
    let ran = once(connection, &unit, |_| Err::<_, &str>("it is not to run"));
    ran.is_ok_and(|answered| matches!(answered.fate, hapax_sqlite::Fate::Replayed { .. }))
}

#[tokio::test]
async fn a_key_is_found_in_every_run_and_by_whoever_asks() {
    const KEYS: usize = 12_000;
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    fill(&store, 0, KEYS).await;
    check(&store, 0, KEYS).await;
    let mut client = sqlite.client();
    let runs = number(&client, "SELECT count(*) FROM hapax_runs WHERE state = 1");
    assert!((2..24).contains(&runs), "neighbours are merged: {runs}");
    let largest = number(&client, "SELECT max(entries) FROM hapax_runs WHERE state = 1");
    assert!(largest >= 4096, "{largest}");
    let tail = "SELECT max(row) - (SELECT max(last_row) FROM hapax_runs WHERE state = 1)
                FROM hapax_claims";
    assert!(number(&client, tail) < 1000, "what is in no run stays short");
    for key in (0..KEYS).step_by(97) {
        assert!(is_replayed(&mut client, &key.to_string()), "{key}");
    }
    assert!(!is_replayed(&mut client, "another"));
    drop(store);
    check(&open(&sqlite, options(&sqlite)), 0, KEYS).await;
    check(&open(&sqlite, small(&sqlite)), 0, KEYS).await;
    check(&Store::open_to_read(sqlite.path(), options(&sqlite)).expect("opened"), 0, KEYS).await;
}

#[tokio::test]
async fn no_key_is_won_twice_by_a_store_with_little_memory() {
    const KEYS: usize = 3000;
    let sqlite = Sqlite::new();
    fill(&open(&sqlite, options(&sqlite)), 0, KEYS).await;
    let store = open(&sqlite, small(&sqlite));
    for again in 0..2 {
        assert_eq!(claim_all(&store, (0..KEYS).map(|key| key.to_string())).await, 0, "{again}");
        fill(&store, KEYS * (again + 1), KEYS * (again + 2)).await;
        // It sees to it that little is remembered.
        store.purge(10).await.expect("purged");
        check(&store, 0, KEYS * (again + 2)).await;
    }
}

/// Two keys whose ids begin with the same four bytes.
fn twins() -> (String, String) {
    let mut seen = HashMap::new();
    for number in 0_u32.. {
        let key = format!("twin-{number}");
        let id = *operation(&key).id().as_bytes();
        if let Some(other) = seen.insert(<[u8; 4]>::try_from(&id[..4]).expect("four"), key.clone())
        {
            return (other, key);
        }
    }
    panic!("there are only so many beginnings")
}

#[tokio::test]
async fn ids_that_begin_alike_are_not_taken_for_each_other() {
    let (one, other) = twins();
    for memory in [0, 1_000_000] {
        let sqlite = Sqlite::new();
        let options = Options { keys_in_memory_max: memory, ..options(&sqlite) };
        let store = open(&sqlite, options.clone());
        claim(&store, &one).await.expect("written");
        assert!(load(&store, &other).await.expect("readable").is_none());
        complete(&store, &one, b"one").await.expect("written");
        assert!(!is_replayed(&mut sqlite.client(), &other));
        fill(&store, 0, 1500).await;
        let store = open(&sqlite, options);
        assert!(load(&store, &other).await.expect("readable").is_none(), "{memory}");
        assert!(matches!(claim(&store, &other).await, Ok(Written::Done { .. })), "{memory}");
        assert!(matches!(claim(&store, &one).await, Ok(Written::Refused { .. })), "{memory}");
        complete(&store, &other, b"other").await.expect("written");
        for (key, body) in [(&one, "one"), (&other, "other")] {
            let record = load(&store, key).await.expect("readable").expect("there");
            let outcome = format!("{:?}", record.outcome());
            assert!(outcome.contains(&format!("{:?}", bytes::Bytes::from(body))), "{outcome}");
            assert!(is_replayed(&mut sqlite.client(), key));
        }
    }
}

#[tokio::test]
async fn all_rows_are_listed_once_and_in_order_through_runs_and_tail() {
    const KEYS: usize = 6000;
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    fill(&store, 0, KEYS).await;
    claim_all(&store, (KEYS..KEYS + 10).map(|key| key.to_string())).await;
    let mut listed: Vec<OperationId> = Vec::new();
    loop {
        let page = Page { after: listed.last().copied(), limit: 700 };
        let page = store.list(Filter::default(), page).await.expect("listed");
        if page.is_empty() {
            break;
        }
        listed.extend(page.iter().map(|listed| listed.id));
    }
    let all: BTreeSet<_> = (0..KEYS + 10).map(|key| operation(&key.to_string()).id()).collect();
    assert!(listed.iter().eq(all.iter()), "{} of {}", listed.len(), all.len());
    let running = Filter { state: Some(StateTag::Running), ..Filter::default() };
    let running = store.list(running, Page { after: None, limit: 100 }).await.expect("listed");
    assert_eq!(running.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_processes_and_transactions_one_wins_each_key() {
    const KEYS: usize = 2500;
    let sqlite = Sqlite::new();
    drop(open(&sqlite, options(&sqlite)));
    let mut contests = Vec::new();
    for (seed, memory) in [(1, 0), (2, 100), (3, 1_000_000)] {
        let options = Options { keys_in_memory_max: memory, ..options(&sqlite) };
        let store = open(&sqlite, options);
        contests.push(tokio::spawn(async move {
            let mut keys: Vec<_> = (0..KEYS).map(|key| key.to_string()).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut keys);
            let mut won = 0;
            for keys in keys.chunks(40) {
                won += claim_all(&store, keys.iter().cloned()).await;
            }
            won
        }));
    }
    let path = sqlite.path();
    let transactions = tokio::task::spawn_blocking(move || transactions(&path, KEYS));
    let mut won = transactions.await.expect("it ends");
    for contest in contests {
        won += contest.await.expect("it ends");
    }
    assert_eq!(won, KEYS);
    let client = sqlite.client();
    assert_eq!(number(&client, "SELECT count(DISTINCT id) FROM hapax_claims"), 2500);
    assert_eq!(number(&client, "SELECT count(*) FROM hapax_claims"), 2500);
}

/// How many keys are won by transactions.
fn transactions(path: &Path, keys: usize) -> usize {
    let mut connection = Connection::open(path).expect("opened");
    connection.busy_timeout(Duration::from_secs(60)).expect("set");
    let mut won = 0;
    for key in (0..keys).step_by(5) {
        let key = key.to_string();
        let unit = OnceRequest::new(operation(&key), first_claim(&key).fingerprint);
        let answer = hapax_core::AttemptAnswer::completed(hapax_core::Outcome::bare(200));
        let ran = once(&mut connection, &unit, |_| Ok::<_, &str>(answer));
        won +=
            usize::from(ran.is_ok_and(|ran| matches!(ran.fate, hapax_sqlite::Fate::Stored { .. })));
    }
    won
}

#[tokio::test]
async fn a_store_that_was_open_all_along_sees_what_others_made_of_the_file() {
    let sqlite = Sqlite::new();
    let (old, new) = (open(&sqlite, options(&sqlite)), open(&sqlite, options(&sqlite)));
    fill(&old, 0, 900).await;
    // Days later the first keys are purged, used again, and others come.
    sqlite.move_clock(48 * 60 * 60 * 1_000_000);
    while new.purge(500).await.expect("purged").total() > 0 {}
    fill(&new, 500, 2000).await;
    check(&old, 500, 2000).await;
    assert!(load(&old, "1").await.expect("readable").is_none());
    assert_eq!(claim_all(&old, (500..2000).map(|key| key.to_string())).await, 0);
    assert_eq!(claim_all(&old, (0..500).map(|key| key.to_string())).await, 500);
}

#[tokio::test]
async fn a_new_life_is_found_and_the_old_one_is_not() {
    let sqlite = Sqlite::new();
    let (store, other) = (open(&sqlite, options(&sqlite)), open(&sqlite, small(&sqlite)));
    fill(&store, 0, 1200).await;
    sqlite.move_clock(48 * 60 * 60 * 1_000_000);
    for round in 0..3 {
        let mut batch = Vec::new();
        for key in (0..1200).step_by(7) {
            let key = key.to_string();
            let found = load(&other, &key).await.expect("readable").expect("there");
            let over = Over::Spent(found.stamp());
            let fence = found.fence.next();
            batch.push(Write::Claim(Claim { over, fence, ..first_claim(&key) }));
        }
        let ends: Vec<_> = batch.iter().map(|write| ended(write.id(), round)).collect();
        for answer in store.commit(batch).await.into_iter().chain(store.commit(ends).await) {
            assert!(matches!(answer, Ok(Written::Done { .. })), "{round}: {answer:?}");
        }
        check(&other, 0, 1200).await;
        sqlite.move_clock(48 * 60 * 60 * 1_000_000);
    }
    assert_eq!(number(&sqlite.client(), "SELECT count(*) FROM hapax_claims"), 1200);
}

fn ended(id: OperationId, round: u8) -> Write {
    let mut fence = Fence::FIRST;
    (0..=round).for_each(|_| fence = fence.next());
    let by = By::Owner { fence, owner: Owner(1) };
    Write::Settle(Settle { id, by, ..completion("any", b"again") })
}

#[tokio::test]
async fn the_number_of_a_row_that_is_gone_is_not_given_again() {
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    fill(&store, 0, 10).await;
    let mut before = number(&sqlite.client(), "SELECT max(row) FROM hapax_claims");
    for key in ["a", "b", "c"] {
        claim(&store, key).await.expect("written");
        let record = load(&store, key).await.expect("readable").expect("there");
        let id = record.operation.id();
        let attempt = hapax_core::Attempt { id, fence: record.fence, owner: record.owner };
        assert!(store.withdraw(attempt).await.expect("withdrawn"));
        assert!(load(&store, key).await.expect("readable").is_none());
        claim(&store, key).await.expect("written");
        let newest = number(&sqlite.client(), "SELECT max(row) FROM hapax_claims");
        assert!(newest > before + 1, "{newest} after {before}");
        before = newest;
    }
}

#[tokio::test]
async fn retentions_that_differ_are_kept_apart_and_nothing_is_left_of_what_is_gone() {
    const KEYS: usize = 3000;
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    for first in (0..KEYS).step_by(300) {
        let keys = || (first..first + 300).map(|key| key.to_string());
        let long = |key: &str| key.ends_with('0');
        let batch = keys().map(|key| {
            let hours = if long(&key) { 100 } else { 1 };
            let retention = Duration::from_secs(hours * 60 * 60);
            Write::Claim(Claim { retention, ..first_claim(&key) })
        });
        store.commit(batch.collect()).await;
        end_all(&store, keys()).await;
    }
    sqlite.move_clock(2 * 60 * 60 * 1_000_000);
    let mut gone = 0;
    for _ in 0..20 {
        gone += store.purge(200).await.expect("purged").deleted;
    }
    assert_eq!(gone, KEYS / 10 * 9);
    for key in 0..KEYS {
        let is_there = load(&store, &key.to_string()).await.expect("readable").is_some();
        assert_eq!(is_there, key % 10 == 0, "{key}");
    }
    sqlite.move_clock(200 * 60 * 60 * 1_000_000);
    for _ in 0..20 {
        gone += store.purge(200).await.expect("purged").deleted;
    }
    assert_eq!(gone, KEYS);
    let client = sqlite.client();
    for table in ["claims", "ends", "open", "ranges", "runs", "chunks"] {
        let rows = number(&client, &format!("SELECT count(*) FROM hapax_{table}"));
        assert_eq!(rows, 0, "{table}");
    }
}

#[tokio::test]
async fn an_index_that_leads_to_little_is_written_anew() {
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    fill(&store, 0, 5000).await;
    // One key in a hundred stays, so no run is ever wholly gone.
    let stays = "UPDATE hapax_claims SET kept_for = kept_for * 100 WHERE row % 100 = 0";
    sqlite.client().execute(stays, []).expect("changed");
    sqlite.move_clock(25 * 60 * 60 * 1_000_000);
    while store.purge(1000).await.expect("purged").total() > 0 {}
    fill(&store, 10_000, 16_000).await;
    let client = sqlite.client();
    let rows = number(&client, "SELECT count(*) FROM hapax_claims");
    let entries = number(&client, "SELECT sum(entries) FROM hapax_runs WHERE state = 1");
    assert!(entries < rows * 2, "{entries} entries for {rows} rows");
    for key in 0..5000 {
        let row = key + 1;
        let is_there = load(&store, &key.to_string()).await.expect("readable").is_some();
        assert_eq!(is_there, row % 100 == 0, "{key}");
    }
}

#[tokio::test]
async fn wherever_a_process_dies_while_runs_are_written_and_removed_every_key_is_found() {
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    let (mut from, mut until) = (0, 0);
    for commit in 0..150 {
        let keys = || (until..until + 64).map(|key| key.to_string());
        claim_all(&store, keys()).await;
        end_all(&store, keys()).await;
        until += 64;
        if commit % 10 == 9 {
            // The oldest are due first, and are as many as come.
            sqlite.move_clock(4 * 60 * 60 * 1_000_000);
            from += store.purge(400).await.expect("purged").deleted;
        }
        if commit % 7 == 0 {
            let copy = Sqlite::new();
            copy.move_clock(i64::from((commit + 1) / 10) * 4 * 60 * 60 * 1_000_000);
            for suffix in ["", "-wal"] {
                let file = |path: std::path::PathBuf| format!("{}{suffix}", path.display());
                fs::copy(file(sqlite.path()), file(copy.path())).expect("copied");
            }
            let mut client = copy.client();
            assert!(is_replayed(&mut client, &from.to_string()), "{commit}");
            assert!(is_replayed(&mut client, &(until - 1).to_string()), "{commit}");
            let store = open(&copy, if commit % 2 == 0 { options(&copy) } else { small(&copy) });
            check(&store, from, until).await;
            fill(&store, until, until + 700).await;
            check(&store, from, until + 700).await;
        }
    }
    assert!(from > 0, "some were purged");
}

#[tokio::test]
async fn a_file_that_something_else_has_filled_is_indexed_when_it_is_opened() {
    const KEYS: usize = 5000;
    let sqlite = Sqlite::new();
    fill(&open(&sqlite, options(&sqlite)), 0, KEYS).await;
    sqlite
        .client()
        .execute_batch("DELETE FROM hapax_runs; DELETE FROM hapax_chunks")
        .expect("gone");
    let store = open(&sqlite, options(&sqlite));
    let covered = "SELECT max(last_row) FROM hapax_runs WHERE state = 1";
    assert_eq!(number(&sqlite.client(), covered), 5000);
    check(&store, 0, KEYS).await;
    check(&open(&sqlite, small(&sqlite)), 0, KEYS).await;
}

#[tokio::test]
async fn an_index_that_lacks_a_part_or_is_unknown_is_refused() {
    for (damage, words) in [
        ("DELETE FROM hapax_chunks", "a part of an index is missing"),
        ("UPDATE hapax_chunks SET entries = x'00'", "ends inside an entry"),
        ("UPDATE hapax_runs SET format = 2", "upgrade this process"),
        ("UPDATE hapax_runs SET state = 9", "unknown state"),
    ] {
        let sqlite = Sqlite::new();
        fill(&open(&sqlite, options(&sqlite)), 0, 1200).await;
        let mut client = sqlite.client();
        client.execute(damage, []).expect("damaged");
        let refusal = Store::open(sqlite.path(), options(&sqlite)).expect_err("it is refused");
        let refusal = format!("{}", hapax_core::OneLine::of(&refusal));
        assert!(refusal.contains(words), "{damage}: {refusal}");
        if !damage.contains("state") {
            let unit = OnceRequest::new(operation("1"), first_claim("1").fingerprint);
            let ran = once(&mut client, &unit, |_| Err::<_, &str>("it is not to run"));
            assert!(
                matches!(ran, Err(hapax_sqlite::TransactionOnceError::Store(_))),
                "{damage}: {ran:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_key_that_outlived_its_retention_while_it_ran_is_purged_once_it_has_ended() {
    let sqlite = Sqlite::new();
    let store = open(&sqlite, options(&sqlite));
    claim(&store, "slow").await.expect("written");
    sqlite.move_clock(48 * 60 * 60 * 1_000_000);
    assert_eq!(store.purge(10).await.expect("purged").total(), 0);
    let released = Settle { to: Settlement::Released, ..completion("slow", b"") };
    let settled = store.commit(vec![Write::Settle(released)]).await.remove(0);
    assert!(matches!(settled, Ok(Written::Done { .. })), "{settled:?}");
    assert_eq!(store.purge(10).await.expect("purged").deleted, 1);
}
