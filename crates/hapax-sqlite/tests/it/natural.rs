//! Writes that are harmless to repeat: what each answers, and the race it closes, really run.

use std::{sync::Barrier, thread, time::Duration};

use hapax_sqlite::natural::{
    LedgerEntry, NaturalError, NaturalRow, Posted, SetIf, Transition, Upserted, Versioned, balance,
    post, set_if, transition, update_versioned, upsert,
};
use rusqlite::{
    Connection,
    types::{Null, Value},
};

use crate::backend::Sqlite;

fn open(sqlite: &Sqlite) -> Connection {
    furnish(sqlite.client())
}

fn in_memory() -> Connection {
    furnish(Connection::open_in_memory().expect("opened"))
}

fn furnish(connection: Connection) -> Connection {
    connection.busy_timeout(Duration::from_secs(10)).expect("set");
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS prices (shop TEXT, item TEXT, price INTEGER, seen INTEGER,
                                                PRIMARY KEY (shop, item));
             CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL,
                                                version INTEGER NOT NULL, address TEXT);
             CREATE TABLE IF NOT EXISTS ledger (account TEXT, entry TEXT, amount INTEGER NOT NULL,
                                                note TEXT, PRIMARY KEY (account, entry));
             INSERT OR IGNORE INTO orders VALUES (7, 'new', 1, 'Rue Morgue 1')",
        )
        .expect("created");
    connection
}

/// Runs `work` in many threads at once, each with a connection of its own.
fn race<T: Send>(sqlite: &Sqlite, work: impl Fn(usize, &Connection) -> T + Sync) -> Vec<T> {
    const THREADS: usize = 8;
    open(sqlite).pragma_update(None, "journal_mode", "WAL").expect("set");
    let (start, work) = (Barrier::new(THREADS), &work);
    thread::scope(|scope| {
        let run = |number| {
            let start = &start;
            scope.spawn(move || {
                let connection = open(sqlite);
                start.wait();
                work(number, &connection)
            })
        };
        let runs: Vec<_> = (0..THREADS).map(run).collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).collect()
    })
}

fn count<T: PartialEq>(answers: &[T], wanted: &T) -> usize {
    answers.iter().filter(|answer| *answer == wanted).count()
}

const ORDER: NaturalRow<'static> = NaturalRow { table: "orders", key: &[("id", &7)] };
const PRICE: NaturalRow<'static> =
    NaturalRow { table: "prices", key: &[("shop", &"a"), ("item", &"x")] };

fn entry<'a>(key: &'a [(&'a str, &'a dyn rusqlite::ToSql)], amount: i64) -> LedgerEntry<'a> {
    let row = NaturalRow { table: "ledger", key };
    let account: (&str, &dyn rusqlite::ToSql) = ("account", &"ada");
    LedgerEntry { row, fields: &[], account, amount: ("amount", amount), floor: Some(0) }
}

#[test]
fn an_upsert_tells_what_it_took() {
    let shop = in_memory();
    let put = |price: Option<i64>, seen: i64| {
        upsert(&shop, &PRICE, &[("price", &price), ("seen", &seen)], Some("seen")).expect("done")
    };
    assert_eq!(put(Some(950), 5), Upserted::Inserted);
    assert_eq!(put(Some(950), 5), Upserted::Unchanged);
    assert_eq!(put(None, 6), Upserted::Updated);
    assert_eq!(put(None, 6), Upserted::Unchanged, "NULL is a value like another");
    assert_eq!(put(Some(950), 5), Upserted::Stale);
    let unguarded = upsert(&shop, &PRICE, &[("price", &1)], None);
    assert_eq!(unguarded.expect("done"), Upserted::Updated);
    assert_eq!(upsert(&shop, &PRICE, &[], None).expect("done"), Upserted::Unchanged);
}

#[test]
fn of_many_who_upsert_at_once_one_inserts_and_the_newest_wins() {
    let sqlite = Sqlite::new();
    let answers = race(&sqlite, |number, shop| {
        let seen = i64::try_from(number).expect("small");
        upsert(shop, &PRICE, &[("price", &(seen * 10)), ("seen", &seen)], Some("seen"))
            .expect("done")
    });
    assert_eq!(count(&answers, &Upserted::Inserted), 1, "{answers:?}");
    let price = "SELECT price FROM prices";
    assert_eq!(open(&sqlite).query_row(price, [], |row| row.get(0)), Ok(70), "{answers:?}");
}

#[test]
fn a_row_moves_to_its_next_state_once() {
    let shop = in_memory();
    let step =
        |from: &[&str], to: &str| transition(&shop, &ORDER, "state", from, to).expect("done");
    assert_eq!(step(&["new"], "paid"), Transition::Moved);
    assert_eq!(step(&["new"], "paid"), Transition::AlreadyThere);
    assert_eq!(step(&["new", "paid"], "paid"), Transition::AlreadyThere);
    let paid = Transition::Refused { present: Some("paid".to_owned()) };
    assert_eq!(step(&["new"], "cancelled"), paid);
    assert_eq!(step(&[], "cancelled"), paid);
    let nobody = NaturalRow { table: "orders", key: &[("id", &8)] };
    let missing = transition(&shop, &nobody, "state", &["new"], "paid").expect("done");
    assert_eq!(missing, Transition::Missing);
}

#[test]
fn of_many_who_move_a_row_at_once_one_does() {
    let sqlite = Sqlite::new();
    let answers = race(&sqlite, |number, shop| {
        let to = ["shipped", "cancelled"][number % 2];
        transition(shop, &ORDER, "state", &["new"], to).expect("done")
    });
    assert_eq!(count(&answers, &Transition::Moved), 1, "{answers:?}");
}

#[test]
fn a_change_to_what_was_read_needs_its_version() {
    let shop = in_memory();
    let save = |address: &str, expected| {
        update_versioned(&shop, &ORDER, &[("address", &address)], "version", expected)
            .expect("done")
    };
    assert_eq!(save("Baker Street 221b", 1), Versioned::Updated { version: 2 });
    assert_eq!(save("Privet Drive 4", 1), Versioned::Stale { present: 2 });
    let nobody = NaturalRow { table: "orders", key: &[("id", &8)] };
    let missing = update_versioned(&shop, &nobody, &[("address", &"x")], "version", 1);
    assert_eq!(missing.expect("done"), Versioned::Missing);
}

#[test]
fn of_many_who_save_what_they_read_one_does_and_nothing_is_undone() {
    let sqlite = Sqlite::new();
    let answers = race(&sqlite, |number, shop| {
        let address = format!("house {number}");
        update_versioned(shop, &ORDER, &[("address", &address)], "version", 1).expect("done")
    });
    assert_eq!(count(&answers, &Versioned::Updated { version: 2 }), 1, "{answers:?}");
    assert_eq!(count(&answers, &Versioned::Stale { present: 2 }), 7, "{answers:?}");
}

#[test]
fn a_value_is_set_only_over_the_expected_one() {
    let shop = in_memory();
    let set = |expected: &str, wanted: &dyn rusqlite::ToSql| {
        set_if(&shop, &ORDER, "address", &expected, wanted).expect("done")
    };
    assert_eq!(set("Rue Morgue 1", &"Elm Street"), SetIf::Set);
    assert_eq!(set("Rue Morgue 1", &"Elm Street"), SetIf::AlreadySet);
    let present = Value::Text("Elm Street".to_owned());
    assert_eq!(set("Rue Morgue 1", &Null), SetIf::Changed { present });
    assert_eq!(set("Elm Street", &Null), SetIf::Set);
    assert_eq!(set("Elm Street", &Null), SetIf::AlreadySet);
    let from_null = set_if(&shop, &ORDER, "address", &Null, &"Ocean View").expect("done");
    assert_eq!(from_null, SetIf::Set);
}

#[test]
fn of_many_who_set_a_value_at_once_one_does_and_the_others_are_told() {
    let sqlite = Sqlite::new();
    let answers = race(&sqlite, |number, shop| {
        set_if(shop, &ORDER, "address", &"Rue Morgue 1", &format!("house {number}")).expect("done")
    });
    assert_eq!(count(&answers, &SetIf::Set), 1, "{answers:?}");
}

#[test]
fn an_entry_is_posted_once_and_nothing_below_the_floor() {
    let shop = in_memory();
    let book = |name: &str, amount| {
        post(&shop, &entry(&[("account", &"ada"), ("entry", &name)], amount)).expect("done")
    };
    assert_eq!(book("salary", 100), Posted::Posted { balance: 100 });
    assert_eq!(book("salary", 100), Posted::AlreadyPosted { balance: 100 });
    assert_eq!(book("salary", 120), Posted::Differs);
    assert_eq!(book("rent", -70), Posted::Posted { balance: 30 });
    assert_eq!(book("shoes", -70), Posted::BelowFloor { balance: 30 });
    assert_eq!(balance(&shop, "ledger", ("account", &"ada"), "amount").expect("summed"), 30);
    assert_eq!(book("shoes", -30), Posted::Posted { balance: 0 }, "a refused key is free");
}

#[test]
fn of_many_withdrawals_at_once_only_as_many_as_the_account_holds() {
    let sqlite = Sqlite::new();
    let key: [(&str, &dyn rusqlite::ToSql); 2] = [("account", &"ada"), ("entry", &"salary")];
    post(&open(&sqlite), &entry(&key, 100)).expect("done");
    let answers = race(&sqlite, |number, shop| {
        let name = format!("cash {number}");
        let first = post(shop, &entry(&[("account", &"ada"), ("entry", &name)], -30));
        let again = post(shop, &entry(&[("account", &"ada"), ("entry", &"fee")], -1));
        again.expect("done");
        matches!(first.expect("done"), Posted::Posted { .. })
    });
    assert_eq!(count(&answers, &true), 3, "{answers:?}");
    let left = balance(&open(&sqlite), "ledger", ("account", &"ada"), "amount").expect("summed");
    assert_eq!(left, 100 - 3 * 30 - 1);
}

#[test]
fn inside_a_transaction_they_are_part_of_it() {
    let mut shop = in_memory();
    let transaction = shop.transaction().expect("begun");
    transition(&transaction, &ORDER, "state", &["new"], "paid").expect("done");
    post(&transaction, &entry(&[("account", &"ada"), ("entry", &"x")], 5)).expect("done");
    let refused = upsert(&transaction, &PRICE, &[("nope", &1)], None);
    assert!(matches!(refused, Err(NaturalError::Sqlite(_))), "{refused:?}");
    upsert(&transaction, &PRICE, &[("price", &1)], None).expect("the transaction goes on");
    transaction.rollback().expect("rolled back");
    let left = "SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM prices)
                + (SELECT count(*) FROM orders WHERE state = 'paid')";
    assert_eq!(shop.query_row(left, [], |row| row.get(0)), Ok(0));
}

#[test]
fn names_are_names_whatever_they_hold() {
    let shop = in_memory();
    shop.execute_batch(r#"CREATE TABLE "a""; DROP TABLE orders;--" ("select" PRIMARY KEY, "x y")"#)
        .expect("created");
    let odd = NaturalRow { table: "a\"; DROP TABLE orders;--", key: &[("select", &1)] };
    assert_eq!(upsert(&shop, &odd, &[("x y", &2)], None).expect("done"), Upserted::Inserted);
    assert_eq!(set_if(&shop, &odd, "x y", &2, &3).expect("done"), SetIf::Set);
    assert_eq!(shop.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)), Ok(1));
}

#[test]
fn what_cannot_be_meant_is_refused_and_nothing_is_written() {
    let shop = in_memory();
    shop.execute("INSERT INTO orders VALUES (8, 'new', 1, NULL)", []).expect("written");
    let row = |key| NaturalRow { table: "orders", key };
    let by_state = row(&[("state", &"new")]);
    let several = transition(&shop, &by_state, "state", &["new"], "paid");
    assert!(matches!(several, Err(NaturalError::NotOneRow { rows: 2, .. })), "{several:?}");
    let no_index = upsert(&shop, &by_state, &[("version", &1)], None);
    assert!(matches!(no_index, Err(NaturalError::Sqlite(_))), "{no_index:?}");
    let keys: [&[(&str, &dyn rusqlite::ToSql)]; 3] = [&[], &[("id", &Null)], &[("", &7)]];
    for key in keys {
        let refused = set_if(&shop, &row(key), "address", &1, &2);
        assert!(matches!(refused, Err(NaturalError::Argument { .. })), "{refused:?}");
    }
    let no_column = set_if(&shop, &ORDER, "adress", &"adress", &"x");
    assert!(matches!(no_column, Err(NaturalError::Sqlite(_))), "{no_column:?}");
    let no_newer = upsert(&shop, &PRICE, &[("price", &1)], Some("seen"));
    assert!(matches!(no_newer, Err(NaturalError::Argument { .. })), "{no_newer:?}");
    let own = update_versioned(&shop, &ORDER, &[("version", &9)], "version", 1);
    assert!(matches!(own, Err(NaturalError::Argument { .. })), "{own:?}");
    let untouched = "SELECT count(*) FROM orders WHERE state = 'new' AND version = 1";
    assert_eq!(shop.query_row(untouched, [], |row| row.get(0)), Ok(2));
}

#[test]
fn the_plain_statements_of_the_page_work_here_too() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/natural.md");
    let page = std::fs::read_to_string(page).expect("read");
    let shop = in_memory();
    let mut ran = 0;
    for statement in page.split("```sql raced\n").skip(1) {
        let (statement, _) = statement.split_once("```").expect("a block ends");
        shop.execute(statement, []).expect(statement);
        assert_eq!(shop.execute(statement, []), Ok(0), "twice: {statement}");
        ran += 1;
    }
    assert_eq!(ran, 4);
}
