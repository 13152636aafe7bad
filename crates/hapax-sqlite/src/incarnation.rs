//! Whether the file is the one it was, as kept in it and in a [small file beside it](crate::position).
//!
//! A copy of the file from earlier has an earlier position than what is written beside it, and a copy elsewhere has
//! nothing beside it. Whoever copies both back is not noticed: nothing outside of the two remembers.

use std::path::Path;

use hapax_core::{
    Owner, Reason, StoreError, Timestamp,
    incarnation::{
        Incarnation, IncarnationChange, IncarnationMark, IncarnationReading, Lifted, LossCause,
        Quarantine,
    },
};
use hapax_sqlite_file::TransactError;
use rusqlite::{Connection, OptionalExtension, params, types::FromSql};

use crate::position::PositionFile;

/// What the file says of itself, without what is written beside it.
pub(crate) struct FileMark {
    pub(crate) now: Timestamp,
    id: Option<i64>,
    mark: Option<Kept>,
}

/// What is kept in the file, as it stands there.
struct Kept {
    /// The file it was written in, if that was another than this one.
    written_in: Option<i64>,
    position: i64,
    began: i64,
    /// Since when, why, and the last sign of life before.
    quarantine: Option<(i64, i64, i64)>,
    /// Which file it was before that, if it was another.
    before: Option<String>,
    /// When, by whom and why.
    lifted: Option<(i64, String, String)>,
}

/// Where a copy names the file that it is a copy of.
const WRITTEN_IN: &str = "incarnation_copied_from";

/// Reads what is kept in the file.
pub(crate) fn read(connection: &Connection, now: Timestamp) -> rusqlite::Result<FileMark> {
    let id = value(connection, "incarnation_id")?;
    let Some(position) = value(connection, "incarnation_position")? else {
        return Ok(FileMark { now, id, mark: None });
    };
    let number = |name| Ok::<i64, rusqlite::Error>(value(connection, name)?.unwrap_or(0));
    let text = |name| Ok::<String, rusqlite::Error>(value(connection, name)?.unwrap_or_default());
    let quarantine = match value(connection, "quarantined_since")? {
        None => None,
        Some(since) => {
            Some((since, number("quarantine_cause")?, number("quarantine_seen_before")?))
        }
    };
    let lifted = match value(connection, "quarantine_lifted_at")? {
        None => None,
        Some(at) => Some((at, text("quarantine_lifted_by")?, text("quarantine_lifted_why")?)),
    };
    let began = number("incarnation_began")?;
    let written_in = value(connection, WRITTEN_IN)?;
    let before = value(connection, "quarantine_before")?;
    let mark = Kept { written_in, position, began, quarantine, before, lifted };
    Ok(FileMark { now, id, mark: Some(mark) })
}

/// What the file at `path` says of its past, through a connection that need not write. The store of a process that runs
/// operations says it of itself.
pub fn past(
    connection: &Connection,
    path: &Path,
    now: Timestamp,
) -> Result<IncarnationReading, StoreError> {
    let found = read(connection, now).map_err(StoreError::unavailable)?;
    found.into_reading(draw(), &PositionFile::of(path))
}

impl FileMark {
    /// As the store tells it; `drawn` names a file that has no name of its own yet.
    pub(crate) fn into_reading(
        self,
        drawn: i64,
        beside: &PositionFile,
    ) -> Result<IncarnationReading, StoreError> {
        let id = self.id.unwrap_or(drawn);
        let incarnation = named(id);
        let mark = self.mark.map(|kept| kept.open(&incarnation)).transpose()?;
        let remembered = beside.read(&incarnation).map_err(StoreError::unavailable)?;
        Ok(IncarnationReading {
            now: self.now,
            incarnation,
            synchronous: false,
            mark,
            remembered,
            processes: Vec::new(),
        })
    }
}

impl Kept {
    fn open(self, here: &Incarnation) -> Result<IncarnationMark, StoreError> {
        let incarnation = self.written_in.map_or_else(|| here.clone(), named);
        let before = self.before.map(|origin| Incarnation::new(&origin, 0));
        let before = before.unwrap_or_else(|| incarnation.clone());
        let quarantine = self.quarantine.map(|(since, cause, seen_before)| {
            let unknown = || StoreError::too_new("the cause of the quarantine is not known here");
            Ok::<_, StoreError>(Quarantine {
                since: Timestamp::from_micros(since),
                cause: LossCause::from_stored(cause).ok_or_else(unknown)?,
                before,
                seen_before: Timestamp::from_micros(seen_before),
            })
        });
        let lifted = self.lifted.map(|(at, who, why)| {
            let reason = Reason::new(&who, &why).map_err(StoreError::damaged)?;
            Ok::<_, StoreError>(Lifted { at: Timestamp::from_micros(at), reason })
        });
        Ok(IncarnationMark {
            incarnation,
            position: self.position,
            began: self.began,
            quarantine: quarantine.transpose()?,
            lifted: lifted.transpose()?,
        })
    }
}

/// Keeps this in the file, if its position is the expected one and its name the one that was told. To be done in a
/// transaction that writes.
pub(crate) fn keep(
    connection: &Connection,
    change: &IncarnationChange,
    drawn: i64,
) -> rusqlite::Result<bool> {
    let id = value(connection, "incarnation_id")?;
    let mark = &change.mark;
    let is_expected = value::<i64>(connection, "incarnation_position")? == change.expected
        && named(id.unwrap_or(drawn)) == mark.incarnation;
    if !is_expected {
        return Ok(false);
    }
    let quarantine = mark.quarantine.as_ref();
    let numbers = [
        ("incarnation_id", Some(id.unwrap_or(drawn))),
        (WRITTEN_IN, None),
        ("incarnation_position", Some(mark.position)),
        ("incarnation_began", Some(mark.began)),
        ("quarantined_since", quarantine.map(|quarantine| quarantine.since.as_micros())),
        ("quarantine_cause", quarantine.map(|quarantine| quarantine.cause as i64)),
        ("quarantine_seen_before", quarantine.map(|quarantine| quarantine.seen_before.as_micros())),
        ("quarantine_lifted_at", mark.lifted.as_ref().map(|lifted| lifted.at.as_micros())),
    ];
    for (name, number) in numbers {
        set(connection, name, number)?;
    }
    let before = quarantine.map(|quarantine| quarantine.before.origin());
    set(connection, "quarantine_before", before)?;
    let reason = mark.lifted.as_ref().map(|lifted| &lifted.reason);
    set(connection, "quarantine_lifted_by", reason.map(Reason::who))?;
    set(connection, "quarantine_lifted_why", reason.map(Reason::why))?;
    Ok(true)
}

/// A name for a file that has none.
pub(crate) fn draw() -> i64 {
    Owner::draw().0
}

/// Has a copy of a store say that it is one, wherever it is put: whoever opens it first is told that nobody knows what
/// the store has acknowledged since. To be done before anybody else can open the copy.
pub fn mark_copy(copy: &mut Connection) -> rusqlite::Result<()> {
    let transaction = copy.transaction()?;
    let number = |name| value::<i64>(&transaction, name);
    let (id, written_in) = (number("incarnation_id")?, number(WRITTEN_IN)?);
    if number("incarnation_position")?.is_none() {
        // Nobody had used it yet, and who knows what came after.
        set(&transaction, "incarnation_position", Some(1))?;
        set(&transaction, "incarnation_began", Some(0))?;
    }
    set(&transaction, WRITTEN_IN, written_in.or(id))?;
    set(&transaction, "incarnation_id", Some(draw()))?;
    transaction.commit()
}

/// Sees to it that something beside the file knows its name, before it has one. To be done in a transaction that writes.
pub(crate) fn announce(
    connection: &Connection,
    beside: &PositionFile,
    drawn: i64,
) -> Result<(), TransactError> {
    if value::<i64>(connection, "incarnation_id")?.is_some() {
        return Ok(());
    }
    beside.announce(&named(drawn)).map_err(TransactError::unavailable)
}

/// Writes beside the file how far it has come, as it says itself: to be done while nobody else can write either.
pub(crate) fn remember(
    connection: &Connection,
    beside: &PositionFile,
) -> Result<(), TransactError> {
    let (id, position) =
        (value(connection, "incarnation_id")?, value(connection, "incarnation_position")?);
    let (Some(id), Some(position)) = (id, position) else { return Ok(()) };
    beside.write(&named(id), position).map_err(TransactError::unconfirmed)
}

fn named(id: i64) -> Incarnation {
    Incarnation::new(&format!("file {id:016x}"), 0)
}

fn value<T: FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM hapax_meta WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

fn set<T: rusqlite::ToSql>(
    connection: &Connection,
    name: &str,
    value: Option<T>,
) -> rusqlite::Result<()> {
    match value {
        None => connection
            .prepare_cached("DELETE FROM hapax_meta WHERE name = ?1")?
            .execute([name])
            .map(|_| ()),
        Some(value) => connection
            .prepare_cached(
                "INSERT INTO hapax_meta (name, value) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            )?
            .execute(params![name, value])
            .map(|_| ()),
    }
}
