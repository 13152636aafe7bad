//! What is in the file: its journal mode, its tables, its integrity, its keys.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use hapax::{Timestamp, sqlite, wall_clock};
use rusqlite::{Connection, Error, OpenFlags};

use super::{Diagnosis, beside};
use crate::{
    doctor::{
        Expectations,
        diagnosis::unseen,
        keys::{self, KeyFacts},
        past,
    },
    sentence,
};

/// How long the integrity of the file is looked at.
const LOOKED_FOR: Duration = Duration::from_secs(30);
/// How many faults are told.
const FAULTS_MAX: usize = 10;

const WRITE_AHEAD: &str = "wal";

const TABLES: &str = "SELECT name, sql FROM sqlite_schema WHERE name LIKE 'hapax\\_%' ESCAPE '\\' AND sql IS NOT NULL";
const KEYS: &str = "
SELECT count(*), min(CASE WHEN e.row IS NOT NULL THEN coalesce(e.kept_for, c.kept_for) END),
       coalesce(sum(e.row IS NOT NULL
                    AND c.created_at + coalesce(e.kept_for, c.kept_for) < ?1 - 3600000000), 0)
FROM (SELECT row, created_at, kept_for FROM hapax_claims LIMIT 10000) AS c
LEFT JOIN hapax_ends AS e ON e.row = c.row AND e.state IN (3, 4)
";
const DOUBTS: &str = "
SELECT count(*), coalesce(max(?1 - (c.created_at + c.changed_after)), 0)
FROM (SELECT row FROM hapax_open WHERE state = 5 LIMIT 10000) AS o JOIN hapax_claims AS c ON c.row = o.row
";

/// What SQLite says about the file.
struct DatabaseFacts {
    journal_mode: String,
    /// Zero where there are no tables.
    version: usize,
    /// What the tables, indexes and views were made with.
    found: BTreeMap<String, String>,
    shipped: BTreeMap<String, String>,
    integrity: Integrity,
}

enum Integrity {
    Whole,
    /// It took too long to look at all of it; nothing was found until then.
    NotFinished,
    Damaged(Vec<String>),
}

const CHECKS: &[fn(&DatabaseFacts) -> Diagnosis] = &[journal_mode, schema, tables, integrity];

pub(super) fn examine(path: &Path, expected: Expectations) -> Vec<Diagnosis> {
    let looked = open(path).and_then(|connection| {
        let mut facts = gather(&connection)?;
        if is_write_ahead(path) {
            facts.journal_mode = WRITE_AHEAD.to_owned();
        }
        let keys = match facts.version {
            0 => None,
            _ => {
                let past = sqlite::past(&connection, path, Timestamp::from_micros(micros_now()));
                Some((stored_keys(&connection, expected.client_retries_for), past))
            }
        };
        Ok((facts, keys))
    });
    let (facts, stored) = match looked {
        Ok(looked) => looked,
        Err(error) => return vec![unreadable(&error)],
    };
    let mut found: Vec<_> = CHECKS.iter().map(|check| check(&facts)).collect();
    if let Some((keys, reading)) = stored {
        match keys {
            Ok(facts) => found.extend(keys::CHECKS.iter().map(|check| check(&facts))),
            Err(error) => found.push(unseen("stored keys", &sentence(&error))),
        }
        found.extend(past::examine(reading, expected));
    }
    found
}

/// Opens what is there to read. A file without a log is opened as one that nobody writes, so that SQLite
/// makes no files beside it.
fn open(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if beside(path, "-wal").exists() {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        return Ok(connection);
    }
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// Whether the head of the file says so: a file that is read as one that nobody writes is told to have no log.
fn is_write_ahead(path: &Path) -> bool {
    const VERSIONS_AT: u64 = 18;
    let (mut versions, mut file) = ([0; 2], File::open(path));
    let read = file.as_mut().map(|file| {
        file.seek(SeekFrom::Start(VERSIONS_AT)).and_then(|_| file.read_exact(&mut versions))
    });
    read.is_ok_and(|read| read.is_ok()) && versions == [2, 2]
}

fn gather(connection: &Connection) -> Result<DatabaseFacts, Error> {
    let mut fresh = Connection::open_in_memory()?;
    // What it says of itself is compared below; a schema that cannot be made is a fault of this program.
    let shipped = match sqlite::migrate(&mut fresh) {
        Ok(_) => made_with(&fresh)?,
        Err(_) => BTreeMap::new(),
    };
    Ok(DatabaseFacts {
        journal_mode: connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
        version: sqlite::schema_version(connection).unwrap_or(usize::MAX),
        found: made_with(connection)?,
        shipped,
        integrity: integrity_of(connection)?,
    })
}

fn made_with(connection: &Connection) -> Result<BTreeMap<String, String>, Error> {
    let mut statement = connection.prepare(TABLES)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Looks until it is done or the time is over.
fn integrity_of(connection: &Connection) -> Result<Integrity, Error> {
    let (interrupt, (done, ended)) = (connection.get_interrupt_handle(), mpsc::channel::<()>());
    let looked = thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(LOOKED_FOR) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let looked = quick_check(connection);
        drop(done);
        looked
    });
    match looked {
        Ok(faults) if faults == ["ok"] => Ok(Integrity::Whole),
        Ok(faults) => Ok(Integrity::Damaged(faults)),
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
        {
            Ok(Integrity::NotFinished)
        }
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            Ok(Integrity::Damaged(vec![sentence(&error)]))
        }
        Err(error) => Err(error),
    }
}

fn quick_check(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

fn stored_keys(
    connection: &Connection,
    client_retries_for: Option<Duration>,
) -> Result<KeyFacts, Error> {
    let now = micros_now();
    let count = |count: i64| u64::try_from(count).unwrap_or(0);
    let (looked_at, shortest, past): (i64, Option<i64>, i64) =
        connection.query_row(KEYS, [now], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (in_doubt, oldest): (i64, i64) =
        connection.query_row(DOUBTS, [now], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(KeyFacts {
        looked_at: count(looked_at),
        shortest_window: shortest.map(|micros| Duration::from_micros(count(micros))),
        past_retention: count(past),
        in_doubt: count(in_doubt),
        oldest_doubt: Duration::from_micros(count(oldest)),
        client_retries_for,
    })
}

/// The clock of a file's store is the machine's.
fn micros_now() -> i64 {
    let now = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn unreadable(error: &Error) -> Diagnosis {
    Diagnosis::new("file", format!("SQLite cannot read it: {}", sentence(error))).danger(
        "no key can be read or kept: requests with keys are refused",
        "see that the path is right and this user may read it; otherwise restore a backup, and read docs/backup.md first",
    )
}

fn journal_mode(facts: &DatabaseFacts) -> Diagnosis {
    let found = Diagnosis::new("journal mode", facts.journal_mode.as_str());
    if facts.journal_mode == WRITE_AHEAD {
        return found;
    }
    found.danger(
        "the store refuses to open the file",
        "PRAGMA journal_mode = WAL; if every program that uses the file agrees, or a file of its own for Hapax",
    )
}

fn schema(facts: &DatabaseFacts) -> Diagnosis {
    let (found, needed) = (facts.version, sqlite::VERSION);
    let said = |what: String| Diagnosis::new("schema", what);
    match found {
        0 => said("there are no tables of Hapax".to_owned()).warning(
            "nothing is kept in this file; where keys were kept before, it is another file",
            "correct the path, or hapax migrate --store sqlite:PATH",
        ),
        found if found == needed => said(format!("version {found}")),
        found if found < needed => said(format!("version {found}, this program needs {needed}"))
            .warning(
                "programs of this version bring it up to date when they start",
                "hapax migrate --store sqlite:PATH, with every other program stopped",
            ),
        _ => said("of a newer version".to_owned())
            .danger("this program refuses to open it", "upgrade this program"),
    }
}

fn tables(facts: &DatabaseFacts) -> Diagnosis {
    const NAME: &str = "tables";
    if facts.version != sqlite::VERSION {
        return Diagnosis::new(NAME, "not compared: the schema is of another version");
    }
    let wrong = facts.shipped.iter().filter_map(|(name, made)| match facts.found.get(name) {
        None => Some(format!("{name} is missing")),
        Some(found) if found != made => Some(format!("{name} was changed")),
        Some(_) => None,
    });
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() {
        return Diagnosis::new(NAME, format!("all {} are as shipped", facts.shipped.len()));
    }
    Diagnosis::new(NAME, wrong.join(", ")).danger(
        "the tables are not what this version was tested with: what it promises may not hold",
        "see what changed them; hapax migrate --store sqlite:new.db --print shows how they should be",
    )
}

fn integrity(facts: &DatabaseFacts) -> Diagnosis {
    const NAME: &str = "integrity";
    match &facts.integrity {
        Integrity::Whole => Diagnosis::new(NAME, "quick_check found nothing"),
        Integrity::NotFinished => {
            let secs = LOOKED_FOR.as_secs();
            Diagnosis::new(NAME, format!("quick_check found nothing in {secs} s, and was stopped"))
                .note("what it did not reach may be damaged", "PRAGMA quick_check; at a quiet hour")
        }
        Integrity::Damaged(faults) => Diagnosis::new(NAME, faults.join("; ")).danger(
            "the file is damaged: keys may be missing, and their retries run again",
            "stop what uses the file, copy it aside, restore a backup, and read docs/backup.md",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    #[test]
    fn a_file_as_shipped_is_well_and_what_was_changed_is_named() {
        let mut connection = Connection::open_in_memory().unwrap();
        sqlite::migrate(&mut connection).unwrap();
        let facts = gather(&connection).unwrap();
        assert_eq!(tables(&facts).concern, None);
        assert_eq!(schema(&facts).concern, None);
        assert_eq!(integrity(&facts).concern, None);
        assert_eq!(journal_mode(&facts).severity(), Some(Severity::Danger), "it is in memory");
        connection.execute_batch("DROP INDEX hapax_ranges_due").unwrap();
        let told = tables(&gather(&connection).unwrap());
        assert_eq!(told.found, "hapax_ranges_due is missing");
        assert_eq!(told.severity(), Some(Severity::Danger));
    }
}
