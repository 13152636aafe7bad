//! Events that are published if, and only if, a transaction commits.

use hapax_core::Event;
use rusqlite::{Connection, params};

use crate::key;

/// Says that something happened, to be published if the transaction commits; returns the event's
/// id.
///
/// The event is a row beside your own: it commits or vanishes with them. SQLite has one writer at a
/// time, so events get their positions in the order their transactions commit.
///
/// ```
/// # let mut connection = rusqlite::Connection::open_in_memory()?;
/// # hapax_sqlite::migrate(&mut connection)?;
/// # connection.execute("CREATE TABLE payments (id TEXT PRIMARY KEY)", [])?;
/// use hapax_core::Event;
///
/// let transaction = connection.transaction()?;
/// transaction.execute("INSERT INTO payments VALUES ('p1')", [])?;
/// let event = Event::new("payment.completed", "p1", r#"{"payment":"p1"}"#)?;
/// hapax_sqlite::emit(&transaction, &event)?;
/// transaction.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn emit(connection: &Connection, event: &Event) -> rusqlite::Result<String> {
    let failed = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    let id = draw_id().map_err(failed)?;
    let mut statement = connection.prepare_cached(INSERT)?;
    statement.execute(params![
        id,
        event.topic(),
        event.key(),
        event.payload_type(),
        headers(event),
        &event.payload()[..],
    ])?;
    Ok(id)
}

/// A new event. The clock is SQLite's own, as of this statement.
pub(crate) const INSERT: &str = "INSERT INTO hapax_outbox (at, id, format, topic, key, content_type, headers, payload) \
     VALUES (CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER), ?1, 1, ?2, ?3, ?4, ?5, ?6)";

pub(crate) fn headers(event: &Event) -> String {
    let pairs = event.headers().iter().map(|header| {
        let value = String::from_utf8_lossy(&header.value).into_owned();
        (header.name.clone(), serde_json::Value::String(value))
    });
    serde_json::Value::Object(pairs.collect()).to_string()
}

/// A random UUID (version 4), spelled out.
pub(crate) fn draw_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(key::spell(&bytes))
}
