//! A process is killed anywhere between begin and commit: payments and records never disagree.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use hapax_core::{Faults, Outcome};
use hapax_sqlite::{Once, once, transaction};
use rusqlite::Connection;
use rustix::process::{Signal, getpid, kill_process};

use super::shop::{insert, open, pay, payments, records, unit};
use crate::backend::Sqlite;

/// Inside the work, between two writes of the caller's own.
const BETWEEN_WRITES: &str = "test.between_writes";
const KEYS: usize = 6;

#[test]
fn a_process_killed_at_any_place_leaves_payments_and_records_alike() {
    if let Some(victim) = Victim::of_this_process() {
        victim.run();
    }
    let mut killed = 0;
    for place in transaction::PLACES.iter().copied().chain([BETWEEN_WRITES]) {
        for nth in [1, 2, KEYS] {
            let sqlite = Sqlite::new();
            drop(open(&sqlite));
            let mut child = Victim { path: sqlite.path(), place: place.to_owned(), nth }.spawn();
            let status = child.wait().expect("it ends");
            assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{place} {nth}: {status}");
            killed += 1;
            check(&sqlite, &format!("{place} {nth}"));
        }
    }
    assert_eq!(killed, (transaction::PLACES.len() + 1) * 3);
}

#[test]
fn a_process_killed_under_load_keeps_what_it_answered() {
    for acknowledged in 0..KEYS {
        let sqlite = Sqlite::new();
        drop(open(&sqlite));
        let mut child = Victim { path: sqlite.path(), place: String::new(), nth: 0 }.spawn();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let answered: Vec<_> = lines
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("paid ").map(|(_, key)| key.to_owned()))
            .take(acknowledged)
            .collect();
        child.kill().expect("killed");
        child.wait().expect("it ends");
        let shop = sqlite.client();
        for key in &answered {
            assert_eq!(paid(&shop, key), 1, "{key} was answered");
        }
        check(&sqlite, &format!("after {acknowledged}"));
    }
}

/// Payments and completed records are the same keys; a retry makes each key exactly one payment.
fn check(sqlite: &Sqlite, when: &str) {
    let mut shop = open(sqlite);
    assert_eq!(payments(&shop), 2 * records(&shop, "completed"), "{when}");
    let alone = "SELECT count(*) FROM payments WHERE key NOT IN
                 (SELECT key FROM hapax_operations_readable WHERE state = 'completed')";
    assert_eq!(shop.query_row(alone, [], |row| row.get(0)), Ok(0), "{when}");
    for number in 0..KEYS {
        let key = format!("k{number}");
        run(&mut shop, &unit(sqlite, &key), &Faults::default());
        assert_eq!(paid(&shop, &key), 1, "{when}: {key}");
    }
    pay(&mut shop, &unit(sqlite, "k0"), 500).expect("it is replayed");
    let records = records(&shop, "completed");
    assert_eq!(usize::try_from(records), Ok(KEYS), "{when}");
    let checked = shop.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0));
    assert_eq!(checked.as_deref(), Ok("ok"), "{when}");
}

/// How often both halves of a payment are there.
fn paid(shop: &Connection, key: &str) -> i64 {
    let sql = "SELECT count(*) FROM payments WHERE key = ?1";
    let halves: i64 = shop.query_row(sql, [key], |row| row.get(0)).expect("counted");
    assert_eq!(halves % 2, 0, "{key} is half paid");
    halves / 2
}

/// A payment of two rows.
fn run(shop: &mut Connection, unit: &Once, faults: &Faults) {
    let key = unit.operation.key().as_str();
    let answered = once(shop, unit, |tx| {
        insert(tx, key)?;
        faults.at(BETWEEN_WRITES).expect("it goes on or dies");
        insert(tx, key)?;
        Ok::<_, rusqlite::Error>(Outcome::bare(201))
    });
    assert_eq!(answered.expect("it is answered").outcome.status(), 201);
}

/// This program again, as the process that is killed.
struct Victim {
    path: PathBuf,
    /// Where it kills itself; empty for nowhere.
    place: String,
    /// At which pass of the place.
    nth: usize,
}

const ROLE: &str = "HAPAX_SQLITE_VICTIM";

impl Victim {
    fn spawn(&self) -> Child {
        let role = format!("{}\n{}\n{}", self.path.display(), self.place, self.nth);
        let test =
            "transaction::killed::a_process_killed_at_any_place_leaves_payments_and_records_alike";
        Command::new(env::current_exe().expect("a program"))
            .args(["--exact", test, "--nocapture", "--quiet"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started")
    }

    fn of_this_process() -> Option<Self> {
        let role = env::var(ROLE).ok()?;
        let mut lines = role.split('\n');
        let mut next = || lines.next().expect("three lines").to_owned();
        let (path, place, nth) = (PathBuf::from(next()), next(), next());
        Some(Self { path, place, nth: nth.parse().expect("a number") })
    }

    /// Pays key after key, and says which; never returns.
    fn run(self) -> ! {
        let mut shop = connect(&self.path);
        let faults = self.faults();
        for number in 0..usize::MAX {
            let key = format!("k{}", number % KEYS);
            let unit = Once { faults: faults.clone(), ..unit(&Sqlite::new(), &key) };
            run(&mut shop, &unit, &faults);
            let mut out = std::io::stdout().lock();
            writeln!(out, "\npaid {key}").expect("heard");
        }
        std::process::exit(0)
    }

    fn faults(&self) -> Faults {
        let (place, nth, passes) = (self.place.clone(), self.nth, AtomicUsize::new(0));
        Faults::new(move |at| {
            if at == place && passes.fetch_add(1, Ordering::SeqCst) + 1 == nth {
                let _ = kill_process(getpid(), Signal::KILL);
            }
            Ok(())
        })
    }
}

fn connect(path: &Path) -> Connection {
    Connection::open(path).expect("the file opens")
}
