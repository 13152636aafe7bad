//! An entry as columns: versioned, checked by digest, never guessed.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Fence, Key, Outcome, Owner, Timestamp,
    codec::{self, Sealed},
    time::micros,
};
use hapax_encryption::{FileKey, NotSealed};
use http::{HeaderMap, HeaderName, Method, Uri};
use rusqlite::{OptionalExtension as _, Row, named_params, types::ValueRef};

use super::{
    contents::{
        self, EndColumns, EndPlace, RequestChecks, RequestColumns, RequestPlace, is_sealed_end,
    },
    entry::{EntryState, EntryStateTag, JournalEntry, LastProgress},
    error::{JournalError, UnreadableEntry},
    name::Name,
    request::JournalRequest,
    time::{Moment, boot_bytes, boot_of},
    transaction::JournalTransaction,
};

const INSERT: &str = "
INSERT INTO hapax_calls (
    name, format, state, fence, owner, lease_us, attempts, created_at, created_boot, sent_at,
    sent_boot, noted_at, noted_boot, left_us, key, method, url, headers, withheld, digest, seal, body
) VALUES (
    :name, :format, :state, :fence, :owner, :lease_us, :attempts, :created_at, :created_boot,
    :sent_at, :sent_boot, :noted_at, :noted_boot, :left_us, :key, :method, :url, :headers,
    :withheld, :digest, :seal, :body
) ON CONFLICT (name) DO NOTHING";

const UPDATE: &str = "
UPDATE hapax_calls SET
    state = :state, fence = :fence, owner = :owner, lease_us = :lease_us, attempts = :attempts,
    sent_at = :sent_at, sent_boot = :sent_boot, noted_at = :noted_at, noted_boot = :noted_boot,
    left_us = :left_us, ended_at = :ended_at, ended_boot = :ended_boot, reason = :reason,
    answer_head = :answer_head, answer_digest = :answer_digest, answer_body = :answer_body
WHERE name = :name";

const FIND: &str = "SELECT * FROM hapax_calls WHERE name = ?1";

/// The columns as `SELECT *` gives them. SQLite finds a column by comparing names, each time anew,
/// which takes longer than all else about a row.
const COLUMNS: [&str; 29] = [
    "row",
    "name",
    "format",
    "state",
    "fence",
    "owner",
    "lease_us",
    "attempts",
    "created_at",
    "created_boot",
    "sent_at",
    "sent_boot",
    "noted_at",
    "noted_boot",
    "left_us",
    "ended_at",
    "ended_boot",
    "reason",
    "key",
    "method",
    "url",
    "headers",
    "withheld",
    "digest",
    "seal",
    "answer_head",
    "answer_digest",
    "answer_body",
    "body",
];

/// Writes a new entry; `false` if the name is taken.
pub(super) fn insert(
    page: &JournalTransaction<'_>,
    entry: &JournalEntry,
) -> rusqlite::Result<bool> {
    let request = RequestColumns::of(page.key, entry).map_err(not_sealed)?;
    let rows = page.connection.prepare_cached(INSERT)?.execute(named_params! {
        ":name": entry.name.as_str(),
        ":format": request.format,
        ":state": entry.state.tag() as i64,
        ":fence": entry.fence.get(),
        ":owner": entry.owner.0,
        ":lease_us": lease_us(&entry.state),
        ":attempts": entry.attempts,
        ":created_at": entry.created.wall.as_micros(),
        ":created_boot": boot_bytes(Some(entry.created)),
        ":sent_at": entry.sent.map(|sent| sent.wall.as_micros()),
        ":sent_boot": boot_bytes(entry.sent),
        ":noted_at": entry.noted.at.wall.as_micros(),
        ":noted_boot": boot_bytes(Some(entry.noted.at)),
        ":left_us": micros(entry.noted.left),
        ":key": entry.key.as_str(),
        ":method": entry.request.method.as_str(),
        ":url": request.url,
        ":headers": request.headers,
        ":withheld": request.withheld,
        ":digest": request.digest,
        ":seal": request.seal,
        ":body": &request.body[..],
    })?;
    Ok(rows == 1)
}

/// Writes what may change over what is there under the name.
pub(super) fn update(page: &JournalTransaction<'_>, entry: &JournalEntry) -> rusqlite::Result<()> {
    let ended = entry.state.ended();
    let end = EndColumns::of(page.key, entry).map_err(not_sealed)?;
    page.connection.prepare_cached(UPDATE)?.execute(named_params! {
        ":name": entry.name.as_str(),
        ":state": entry.state.tag() as i64,
        ":fence": entry.fence.get(),
        ":owner": entry.owner.0,
        ":lease_us": lease_us(&entry.state),
        ":attempts": entry.attempts,
        ":sent_at": entry.sent.map(|sent| sent.wall.as_micros()),
        ":sent_boot": boot_bytes(entry.sent),
        ":noted_at": entry.noted.at.wall.as_micros(),
        ":noted_boot": boot_bytes(Some(entry.noted.at)),
        ":left_us": micros(entry.noted.left),
        ":ended_at": ended.map(|ended| ended.wall.as_micros()),
        ":ended_boot": boot_bytes(ended),
        ":reason": end.reason,
        ":answer_head": end.head.as_deref(),
        ":answer_digest": end.digest,
        ":answer_body": end.body.as_deref(),
    })?;
    Ok(())
}

/// What is kept under this name: an entry, nothing, or something that cannot be read.
pub(super) fn find(
    page: &JournalTransaction<'_>,
    name: &Name,
) -> rusqlite::Result<Result<Option<JournalEntry>, JournalError>> {
    let mut statement = page.connection.prepare_cached(FIND)?;
    let read = |row: &Row<'_>| Ok(read(page.key, row));
    let found = statement.query_row([name.as_str()], read).optional()?;
    Ok(found.transpose())
}

/// The entry in this row of all columns.
pub(super) fn read(key: Option<&FileKey>, row: &Row<'_>) -> Result<JournalEntry, JournalError> {
    let columns = EntryColumns { row, key };
    columns.entry().map_err(|unreadable| {
        let name = columns.bytes("name").unwrap_or_default();
        JournalError::unreadable(String::from_utf8_lossy(name).into_owned(), unreadable)
    })
}

/// Nothing is written of what cannot be sealed.
fn not_sealed(error: NotSealed) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

struct EntryColumns<'a> {
    row: &'a Row<'a>,
    key: Option<&'a FileKey>,
}

impl<'a> EntryColumns<'a> {
    fn entry(&self) -> Result<JournalEntry, UnreadableEntry> {
        let name = self.parsed("name", |text| Name::parse(text).ok())?;
        let key = self.parsed("key", |text| Key::parse(text).ok())?;
        let request = match self.integer("format")? {
            contents::CLEAR => self.clear_request(&name, &key)?,
            contents::SEALED => self.sealed_request(&name, &key)?,
            found if found > contents::FORMAT => return Err(UnreadableEntry::TooNew { found }),
            found => return Err(impossible("format", &found)),
        };
        let fence = self.integer("fence")?;
        let attempts = self.integer("attempts")?;
        let mut entry = JournalEntry {
            name,
            key,
            request,
            state: EntryState::Pending { lease: None },
            fence: Fence::from_stored(fence).ok_or_else(|| impossible("fence", &fence))?,
            owner: Owner(self.integer("owner")?),
            attempts: u32::try_from(attempts).map_err(|_| impossible("attempts", &attempts))?,
            created: self.moment("created_at", "created_boot")?,
            sent: self.moment_if_any("sent_at", "sent_boot")?,
            noted: LastProgress {
                at: self.moment("noted_at", "noted_boot")?,
                left: self.span("left_us")?,
            },
        };
        entry.state = self.state(&entry)?;
        Ok(entry)
    }

    fn clear_request(&self, name: &Name, key: &Key) -> Result<JournalRequest, UnreadableEntry> {
        let request = JournalRequest {
            method: self.method()?,
            url: self.parsed("url", |text| text.parse::<Uri>().ok())?,
            headers: headers(self.bytes("headers")?)?,
            withheld: self.withheld()?,
            body: Bytes::copy_from_slice(self.bytes("body")?),
        };
        let checks = RequestChecks::of(name, key, &request);
        if self.bytes("digest")? != checks.digest.0 || self.bytes("seal")? != checks.seal.0 {
            return Err(UnreadableEntry::Altered);
        }
        Ok(request)
    }

    fn sealed_request(&self, name: &Name, key: &Key) -> Result<JournalRequest, UnreadableEntry> {
        for column in ["headers", "digest", "seal"] {
            if !self.bytes(column)?.is_empty() {
                return Err(UnreadableEntry::Altered);
            }
        }
        let method = self.method()?;
        let (url, withheld) = (self.text("url")?, self.text("withheld")?);
        let place = RequestPlace { name, key, method: &method, url, withheld };
        let [query, lines, body] = place.open(self.key, self.bytes("body")?)?;
        let url = Uri::try_from([url.as_bytes(), &query].concat());
        let url = url.map_err(|_| impossible("url", &"no URL"))?;
        Ok(JournalRequest {
            method,
            url,
            headers: headers(&lines)?,
            withheld: self.withheld()?,
            body,
        })
    }

    fn method(&self) -> Result<Method, UnreadableEntry> {
        self.parsed("method", |text| text.parse::<Method>().ok())
    }

    fn withheld(&self) -> Result<Vec<HeaderName>, UnreadableEntry> {
        self.parsed("withheld", |text| {
            text.split_ascii_whitespace().map(|name| name.parse::<HeaderName>().ok()).collect()
        })
    }

    /// The state that `entry`, whose other columns were read, is in.
    fn state(&self, entry: &JournalEntry) -> Result<EntryState, UnreadableEntry> {
        let number = self.integer("state")?;
        let tag = EntryStateTag::ALL.into_iter().find(|tag| *tag as i64 == number);
        let tag = tag.ok_or_else(|| impossible("state", &number))?;
        let ended = || self.moment("ended_at", "ended_boot");
        let (answer, reason) = (|| self.answer(entry, tag), || self.reason(entry, tag));
        Ok(match tag {
            EntryStateTag::Pending => {
                let lease = match self.value("lease_us") {
                    Ok(ValueRef::Null) => None,
                    Ok(_) | Err(_) => Some(self.span("lease_us")?),
                };
                EntryState::Pending { lease }
            }
            EntryStateTag::Done => EntryState::Done { answer: answer()?, ended: ended()? },
            EntryStateTag::Refused => EntryState::Refused { answer: answer()?, ended: ended()? },
            EntryStateTag::Unknown => EntryState::Unknown { reason: reason()?, ended: ended()? },
            EntryStateTag::GaveUp => EntryState::GaveUp { reason: reason()?, ended: ended()? },
        })
    }

    fn answer(&self, entry: &JournalEntry, tag: EntryStateTag) -> Result<Outcome, UnreadableEntry> {
        let sealed = match self.sealed_end() {
            Some(sealed) => EndPlace::of(entry, tag).open_answer(self.key, sealed)?,
            None => {
                let digest = self.bytes("answer_digest")?;
                let unlike = || impossible("answer_digest", &digest.len());
                Sealed {
                    head: Bytes::copy_from_slice(self.bytes("answer_head")?),
                    body: Bytes::copy_from_slice(self.bytes("answer_body")?),
                    digest: digest.try_into().map_err(|_| unlike())?,
                }
            }
        };
        codec::open(contents::answer_id(entry), &sealed).map_err(UnreadableEntry::Answer)
    }

    fn reason(&self, entry: &JournalEntry, tag: EntryStateTag) -> Result<String, UnreadableEntry> {
        match self.sealed_end() {
            Some(sealed) => EndPlace::of(entry, tag).open_reason(self.key, sealed),
            None => Ok(self.text("reason")?.to_owned()),
        }
    }

    /// The ciphertext of how it ended; `None` if that is clear.
    fn sealed_end(&self) -> Option<&'a [u8]> {
        let (head, body) = (self.bytes("answer_head").ok()?, self.bytes("answer_body").ok()?);
        is_sealed_end(head, body).then_some(body)
    }

    fn moment(&self, wall: &'static str, boot: &'static str) -> Result<Moment, UnreadableEntry> {
        self.moment_if_any(wall, boot)?.ok_or_else(|| impossible(wall, &"nothing"))
    }

    fn moment_if_any(
        &self,
        wall: &'static str,
        boot: &'static str,
    ) -> Result<Option<Moment>, UnreadableEntry> {
        if matches!(self.value(wall), Ok(ValueRef::Null)) {
            return Ok(None);
        }
        let wall = Timestamp::from_micros(self.integer(wall)?);
        let boot = match self.value(boot) {
            Ok(ValueRef::Null) => None,
            Ok(_) | Err(_) => {
                let bytes = self.bytes(boot)?;
                Some(boot_of(bytes).ok_or_else(|| impossible(boot, &bytes.len()))?)
            }
        };
        Ok(Some(Moment { wall, boot }))
    }

    fn span(&self, column: &'static str) -> Result<Duration, UnreadableEntry> {
        let micros = self.integer(column)?;
        let micros = u64::try_from(micros).map_err(|_| impossible(column, &micros))?;
        Ok(Duration::from_micros(micros))
    }

    fn parsed<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, UnreadableEntry> {
        let text = self.text(column)?;
        parse(text).ok_or_else(|| impossible(column, &text))
    }

    fn text(&self, column: &'static str) -> Result<&'a str, UnreadableEntry> {
        let bytes = self.bytes(column)?;
        str::from_utf8(bytes).map_err(|_| impossible(column, &String::from_utf8_lossy(bytes)))
    }

    fn value(&self, column: &'static str) -> rusqlite::Result<ValueRef<'a>> {
        let place = COLUMNS.iter().position(|known| *known == column);
        self.row.get_ref(place.ok_or_else(|| rusqlite::Error::InvalidColumnName(column.into()))?)
    }

    fn bytes(&self, column: &'static str) -> Result<&'a [u8], UnreadableEntry> {
        match self.value(column) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Ok(bytes),
            Ok(ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_)) | Err(_) => {
                Err(impossible(column, &"neither text nor bytes"))
            }
        }
    }

    fn integer(&self, column: &'static str) -> Result<i64, UnreadableEntry> {
        match self.value(column) {
            Ok(ValueRef::Integer(value)) => Ok(value),
            Ok(ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_))
            | Err(_) => Err(impossible(column, &"no number")),
        }
    }
}

/// What stands there may be a secret, and is not repeated.
fn headers(lines: &[u8]) -> Result<HeaderMap, UnreadableEntry> {
    contents::headers(lines).ok_or_else(|| impossible("headers", &"no headers"))
}

fn lease_us(state: &EntryState) -> Option<i64> {
    match state {
        EntryState::Pending { lease } => lease.map(micros),
        EntryState::Done { .. }
        | EntryState::Refused { .. }
        | EntryState::Unknown { .. }
        | EntryState::GaveUp { .. } => None,
    }
}

fn impossible(column: &'static str, value: &impl ToString) -> UnreadableEntry {
    UnreadableEntry::Impossible { column, value: value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_where_they_are_looked_for() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        assert_eq!(connection.prepare(FIND).unwrap().column_names(), COLUMNS);
    }
}
