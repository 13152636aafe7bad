//! An entry as columns: versioned, checked by digest, never guessed.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Fence, Key, OperationId, Outcome, Owner, Timestamp,
    codec::{self, Sealed},
    time::micros,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, types::ValueRef};

use super::{
    entry::{EntryState, EntryStateTag, JournalEntry, LastProgress},
    error::{JournalError, UnreadableEntry},
    name::Name,
    request::{JournalRequest, RequestDigest},
    time::{Boot, Moment},
};

/// The version this code writes. It reads every version up to it.
pub(super) const FORMAT: i64 = 1;

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
pub(super) fn insert(connection: &Connection, entry: &JournalEntry) -> rusqlite::Result<bool> {
    let request = &entry.request;
    let sealed = Constant::of(&entry.name, &entry.key, request);
    let rows = connection.prepare_cached(INSERT)?.execute(named_params! {
        ":name": entry.name.as_str(),
        ":format": FORMAT,
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
        ":method": request.method.as_str(),
        ":url": request.url.to_string(),
        ":headers": sealed.headers,
        ":withheld": sealed.withheld,
        ":digest": sealed.digest.0,
        ":seal": sealed.seal.0,
        ":body": &request.body[..],
    })?;
    Ok(rows == 1)
}

/// Writes what may change over what is there under the name.
pub(super) fn update(connection: &Connection, entry: &JournalEntry) -> rusqlite::Result<()> {
    let ended = entry.state.ended();
    let answer = entry.state.answer().map(|answer| codec::seal(answer_id(entry), answer));
    connection.prepare_cached(UPDATE)?.execute(named_params! {
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
        ":reason": entry.state.reason(),
        ":answer_head": answer.as_ref().map(|answer| &answer.head[..]),
        ":answer_digest": answer.as_ref().map(|answer| answer.digest),
        ":answer_body": answer.as_ref().map(|answer| &answer.body[..]),
    })?;
    Ok(())
}

/// What is kept under this name: an entry, nothing, or something that cannot be read.
pub(super) fn find(
    connection: &Connection,
    name: &Name,
) -> rusqlite::Result<Result<Option<JournalEntry>, JournalError>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row([name.as_str()], |row| Ok(read(row))).optional()?;
    Ok(found.transpose())
}

/// The entry in this row of all columns.
pub(super) fn read(row: &Row<'_>) -> Result<JournalEntry, JournalError> {
    let columns = EntryColumns(row);
    columns.entry().map_err(|unreadable| {
        let name = columns.bytes("name").unwrap_or_default();
        JournalError::unreadable(String::from_utf8_lossy(name).into_owned(), unreadable)
    })
}

/// The columns that never change, and what shows that they did not.
struct Constant {
    headers: Vec<u8>,
    withheld: String,
    digest: RequestDigest,
    seal: RequestDigest,
}

impl Constant {
    fn of(name: &Name, key: &Key, request: &JournalRequest) -> Self {
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            headers.extend_from_slice(name.as_str().as_bytes());
            headers.extend_from_slice(b": ");
            headers.extend_from_slice(value.as_bytes());
            headers.extend_from_slice(b"\r\n");
        }
        let withheld: Vec<&str> = request.withheld.iter().map(HeaderName::as_str).collect();
        let withheld = withheld.join(" ");
        let digest = request.digest();
        let (name, key) = (name.as_str().as_bytes(), key.as_str().as_bytes());
        let seal = RequestDigest::of(&[name, key, &headers, withheld.as_bytes(), &digest.0]);
        Self { headers, withheld, digest, seal }
    }
}

struct EntryColumns<'a>(&'a Row<'a>);

impl<'a> EntryColumns<'a> {
    fn entry(&self) -> Result<JournalEntry, UnreadableEntry> {
        match self.integer("format")? {
            FORMAT => {}
            found if found > FORMAT => return Err(UnreadableEntry::TooNew { found }),
            found => return Err(impossible("format", &found)),
        }
        let name = self.parsed("name", |text| Name::parse(text).ok())?;
        let key = self.parsed("key", |text| Key::parse(text).ok())?;
        let request = self.request()?;
        let constant = Constant::of(&name, &key, &request);
        if self.bytes("digest")? != constant.digest.0 || self.bytes("seal")? != constant.seal.0 {
            return Err(UnreadableEntry::Altered);
        }
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
        entry.state = self.state(answer_id(&entry))?;
        Ok(entry)
    }

    fn request(&self) -> Result<JournalRequest, UnreadableEntry> {
        let mut headers = HeaderMap::new();
        let lines = self.bytes("headers")?;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let (name, value) = header(line)
                .ok_or_else(|| impossible("headers", &String::from_utf8_lossy(line)))?;
            headers.append(name, value);
        }
        let withheld = self.parsed("withheld", |text| {
            text.split_ascii_whitespace().map(|name| name.parse::<HeaderName>().ok()).collect()
        })?;
        Ok(JournalRequest {
            method: self.parsed("method", |text| text.parse::<Method>().ok())?,
            url: self.parsed("url", |text| text.parse::<Uri>().ok())?,
            headers,
            withheld,
            body: Bytes::copy_from_slice(self.bytes("body")?),
        })
    }

    fn state(&self, id: OperationId) -> Result<EntryState, UnreadableEntry> {
        let number = self.integer("state")?;
        let tag = EntryStateTag::ALL.into_iter().find(|tag| *tag as i64 == number);
        let ended = || self.moment("ended_at", "ended_boot");
        let reason = || self.parsed("reason", |text| Some(text.to_owned()));
        Ok(match tag.ok_or_else(|| impossible("state", &number))? {
            EntryStateTag::Pending => {
                let lease = match self.value("lease_us") {
                    Ok(ValueRef::Null) => None,
                    Ok(_) | Err(_) => Some(self.span("lease_us")?),
                };
                EntryState::Pending { lease }
            }
            EntryStateTag::Done => EntryState::Done { answer: self.answer(id)?, ended: ended()? },
            EntryStateTag::Refused => {
                EntryState::Refused { answer: self.answer(id)?, ended: ended()? }
            }
            EntryStateTag::Unknown => EntryState::Unknown { reason: reason()?, ended: ended()? },
            EntryStateTag::GaveUp => EntryState::GaveUp { reason: reason()?, ended: ended()? },
        })
    }

    fn answer(&self, id: OperationId) -> Result<Outcome, UnreadableEntry> {
        let digest = self.bytes("answer_digest")?;
        let sealed = Sealed {
            head: Bytes::copy_from_slice(self.bytes("answer_head")?),
            body: Bytes::copy_from_slice(self.bytes("answer_body")?),
            digest: digest.try_into().map_err(|_| impossible("answer_digest", &digest.len()))?,
        };
        codec::open(id, &sealed).map_err(UnreadableEntry::Answer)
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
        let bytes = self.bytes(column)?;
        let parsed = str::from_utf8(bytes).ok().and_then(parse);
        parsed.ok_or_else(|| impossible(column, &String::from_utf8_lossy(bytes)))
    }

    fn value(&self, column: &'static str) -> rusqlite::Result<ValueRef<'a>> {
        let place = COLUMNS.iter().position(|known| *known == column);
        self.0.get_ref(place.ok_or_else(|| rusqlite::Error::InvalidColumnName(column.into()))?)
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

/// What binds a stored answer to its operation.
fn answer_id(entry: &JournalEntry) -> OperationId {
    let (name, key) = (entry.name.as_str().as_bytes(), entry.key.as_str().as_bytes());
    let RequestDigest(digest) = RequestDigest::of(&[name, key]);
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    OperationId::from_bytes(id)
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let line = line.strip_suffix(b"\r\n")?;
    let colon = line.windows(2).position(|pair| pair == b": ")?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    Some((name, HeaderValue::from_bytes(&line[colon + 2..]).ok()?))
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

/// Big-endian, so that bytes of one boot sort as their times do.
pub(super) fn boot_bytes(moment: Option<Moment>) -> Option<[u8; 24]> {
    let boot = moment?.boot?;
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(&boot.id);
    bytes[16..].copy_from_slice(&micros(boot.since).to_be_bytes());
    Some(bytes)
}

fn boot_of(bytes: &[u8]) -> Option<Boot> {
    let (id, since) = bytes.split_first_chunk::<16>()?;
    let micros = u64::from_be_bytes(since.try_into().ok()?);
    Some(Boot { id: *id, since: Duration::from_micros(micros) })
}

fn impossible(column: &'static str, value: &impl ToString) -> UnreadableEntry {
    UnreadableEntry::Impossible { column, value: value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_where_they_are_looked_for() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        assert_eq!(connection.prepare(FIND).unwrap().column_names(), COLUMNS);
    }
}
