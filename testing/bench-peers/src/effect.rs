//! The handler behind every way: it does the effect each time it is called, and counts.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use serde_json::Value;

/// Where the effect is.
pub(crate) const PATH: &str = "/payments";
/// Where the handler tells what it did.
pub(crate) const LEDGER: &str = "/ledger";
/// The length of every answer, in bytes.
pub(crate) const ANSWER_BYTES: usize = 512;
/// What the body of a request with instructions starts with; others are not parsed.
pub(crate) const INSTRUCTIONS: &[u8] = b"{\"exam\":";

/// The effect, to be protected.
pub(crate) fn effect(effects: Effects) -> Router {
    Router::new().route(PATH, post(pay)).with_state(effects)
}

/// What the handler did, to be asked without protection.
pub(crate) fn ledger(effects: Effects) -> Router {
    Router::new().route(LEDGER, get(totals)).with_state(effects)
}

/// How often the effect was done for each key. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum Effects {
    /// In memory, for measurements.
    Counted(Arc<Mutex<Book>>),
    /// As lines of a file, which outlive a process and are shared by several.
    Noted(Arc<Path>),
}

#[derive(Debug, Default)]
pub(crate) struct Book {
    by_key: HashMap<Box<[u8]>, u32>,
    executions: u64,
    repeated: u64,
}

impl Effects {
    pub(crate) fn new(file: Option<&Path>) -> Self {
        file.map_or_else(|| Self::Counted(Arc::default()), |file| Self::Noted(file.into()))
    }

    /// Does the effect, and says the how manieth it is for this key.
    fn done(&self, key: &str) -> io::Result<u32> {
        match self {
            Self::Counted(book) => Ok(locked(book).count(key.as_bytes())),
            Self::Noted(path) => {
                let mut file = File::options().append(true).create(true).open(path)?;
                file.write_all(format!("{key}\n").as_bytes())?;
                Ok(noted(path, key))
            }
        }
    }
}

/// Counting does not stop half-way, so a poisoned book is still right.
fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    fn count(&mut self, key: &[u8]) -> u32 {
        self.executions += 1;
        let Some(times) = self.by_key.get_mut(key) else {
            self.by_key.insert(key.into(), 1);
            return 1;
        };
        self.repeated += u64::from(*times == 1);
        *times += 1;
        *times
    }
}

/// How often this key was executed, by the file that effects are noted in.
pub(crate) fn noted(file: &Path, key: &str) -> u32 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| u32::from(line == key)).sum()
}

/// The answer of the how manieth execution of a key.
pub(crate) fn answer(run: u32) -> String {
    let mut text = String::with_capacity(ANSWER_BYTES);
    // Writing to a string does not fail.
    let _ = write!(text, "run={run};");
    let rest = ANSWER_BYTES.saturating_sub(text.len());
    text.push_str(&".".repeat(rest));
    text
}

async fn pay(
    State(effects): State<Effects>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let Ok(run) = effects.done(key.unwrap_or_default()) else {
        return (StatusCode::INSUFFICIENT_STORAGE, String::new());
    };
    let mut status = StatusCode::CREATED;
    if body.starts_with(INSTRUCTIONS) {
        let told: Value = serde_json::from_slice(&body).unwrap_or_default();
        if run == 1 || told["every_time"] == true {
            tokio::time::sleep(Duration::from_millis(told["wait_ms"].as_u64().unwrap_or(0))).await;
        }
        let asked = told["status"].as_u64().and_then(|code| u16::try_from(code).ok());
        status = asked.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(status);
    }
    (status, answer(run))
}

async fn totals(State(effects): State<Effects>) -> String {
    match effects {
        Effects::Counted(book) => {
            let book = locked(&book);
            format!("{} {} {}", book.executions, book.by_key.len(), book.repeated)
        }
        Effects::Noted(_) => String::new(),
    }
}

/// A ledger in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    executions: u64,
    keys: u64,
    repeated: u64,
}

impl Totals {
    /// `None` if this is not what the handler tells.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { executions: next()?, keys: next()?, repeated: next()? })
    }

    /// What is wrong if this many keys were to be executed once each.
    pub(crate) fn wrong(self, answered: u64) -> Option<String> {
        let Self { executions, keys, repeated } = self;
        (self != Self { executions: answered, keys: answered, repeated: 0 }).then(|| {
            format!(
                "{answered} keys were answered, but {keys} keys were executed {executions} times, \
                 {repeated} of them more than once"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_ran_twice_or_not_at_all_is_told() {
        let mut book = Book::default();
        for (key, run) in [(b"a", 1), (b"b", 1), (b"b", 2), (b"b", 3)] {
            assert_eq!(book.count(key), run);
        }
        assert_eq!((book.executions, book.by_key.len(), book.repeated), (4, 2, 1));
        assert_eq!(
            Totals::read("4 2 1").unwrap().wrong(2).unwrap().matches("more than").count(),
            1
        );
        assert_eq!(Totals::read("2 2 0").unwrap().wrong(2), None);
        assert!(Totals::read("2 2 0").unwrap().wrong(3).is_some());
        assert_eq!(Totals::read("2 2"), None);
    }

    #[test]
    fn effects_outlive_the_process_that_did_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("effects");
        assert_eq!(Effects::new(Some(&file)).done("k").unwrap(), 1);
        assert_eq!(noted(&file, "k"), 1);
        assert_eq!(Effects::new(Some(&file)).done("k").unwrap(), 2);
        assert_eq!((noted(&file, "k"), noted(&file, "other")), (2, 0));
    }

    #[test]
    fn every_answer_has_the_same_length_and_says_which_run_it_is() {
        assert_eq!((answer(1).len(), answer(12_345).len()), (ANSWER_BYTES, ANSWER_BYTES));
        assert!(answer(2).starts_with("run=2;."));
    }
}
