//! A process is killed anywhere between begin and commit: payments and records never disagree.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use hapax_core::Faults;
use hapax_sqlite::{OnceRequest, once, transaction};
use rusqlite::Connection;
use rustix::process::{Signal, getpid, kill_process};

use super::shop::{answer, insert, open, pay, payments, records, unit};
use crate::backend::Sqlite;

/// Inside the work, between two writes of the caller's own.
pub(crate) const BETWEEN_WRITES: &str = "test.between_writes";
const KEYS: usize = 6;
#[cfg(feature = "sqlx")]
const DRIVERS: [&str; 2] = ["rusqlite", "sqlx"];
#[cfg(not(feature = "sqlx"))]
const DRIVERS: [&str; 1] = ["rusqlite"];

#[test]
fn a_process_killed_at_any_place_leaves_payments_and_records_alike() {
    if let Some(victim) = Victim::of_this_process() {
        victim.run();
    }
    for driver in DRIVERS {
        for place in transaction::PLACES.iter().copied().chain([BETWEEN_WRITES]) {
            for nth in [1, 2, KEYS] {
                let (sqlite, when) = (Sqlite::new(), format!("{driver}: {place} {nth}"));
                drop(open(&sqlite));
                let mut child = Victim::new(&sqlite, driver, place, nth).spawn();
                let status = child.wait().expect("it ends");
                assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{when}: {status}");
                check(&sqlite, &when);
            }
        }
    }
}

#[test]
fn a_process_killed_under_load_keeps_what_it_answered() {
    for (acknowledged, driver) in (0..KEYS).flat_map(|n| DRIVERS.map(|driver| (n, driver))) {
        let sqlite = Sqlite::new();
        drop(open(&sqlite));
        let mut child = Victim::new(&sqlite, driver, "", 0).spawn();
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
        check(&sqlite, &format!("{driver}: after {acknowledged}"));
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
fn run(shop: &mut Connection, unit: &OnceRequest, faults: &Faults) {
    let key = unit.operation.key().as_str();
    let answered = once(shop, unit, |tx| {
        insert(tx, key)?;
        faults.at(BETWEEN_WRITES).expect("it goes on or dies");
        insert(tx, key)?;
        Ok::<_, rusqlite::Error>(answer(201))
    });
    assert_eq!(answered.expect("it is answered").outcome.status(), 201);
}

/// This program again, as the process that is killed.
struct Victim {
    path: PathBuf,
    driver: String,
    /// Where it kills itself; empty for nowhere.
    place: String,
    /// At which pass of the place.
    nth: usize,
}

const ROLE: &str = "HAPAX_SQLITE_VICTIM";

impl Victim {
    fn new(sqlite: &Sqlite, driver: &str, place: &str, nth: usize) -> Self {
        Self { path: sqlite.path(), driver: driver.to_owned(), place: place.to_owned(), nth }
    }

    fn spawn(&self) -> Child {
        let Self { path, driver, place, nth } = self;
        let role = format!("{}\n{driver}\n{place}\n{nth}", path.display());
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
        let mut next = || lines.next().expect("four lines").to_owned();
        let (path, driver, place, nth) = (PathBuf::from(next()), next(), next(), next());
        Some(Self { path, driver, place, nth: nth.parse().expect("a number") })
    }

    /// Pays key after key, and says which; never returns.
    fn run(self) -> ! {
        let mut pay = self.payer();
        for number in 0..usize::MAX {
            let key = format!("k{}", number % KEYS);
            pay(&key);
            let mut out = std::io::stdout().lock();
            writeln!(out, "\npaid {key}").expect("heard");
        }
        std::process::exit(0)
    }

    fn payer(&self) -> Box<dyn FnMut(&str)> {
        let faults = self.faults();
        #[cfg(feature = "sqlx")]
        if self.driver == "sqlx" {
            return super::pool::payer(&self.path, faults);
        }
        let mut shop = connect(&self.path);
        Box::new(move |key| {
            let unit = OnceRequest { faults: faults.clone(), ..unit(&Sqlite::new(), key) };
            run(&mut shop, &unit, &faults);
        })
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
