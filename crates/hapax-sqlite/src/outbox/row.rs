//! Events as columns.

use std::collections::BTreeMap;

use bytes::Bytes;
use hapax_core::{
    Header, StoreError, Timestamp,
    outbox::{EventId, Lane, Stored},
};
use rusqlite::Row;

/// What [`event`] reads, in its order.
macro_rules! event_columns {
    () => {
        "position, at, id, format, topic, key, content_type, headers, payload"
    };
}
pub(super) use event_columns;

/// The format of events this version writes and reads.
const FORMAT: i64 = 1;

/// The event in the columns of [`event_columns!`]; the inner error is this event's alone.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Result<Stored, StoreError>> {
    let format: i64 = row.get(3)?;
    if format != FORMAT {
        return Ok(Err(StoreError::too_new(format!("an event of format {format}"))));
    }
    let (topic, key): (String, String) = (row.get(4)?, row.get(5)?);
    let Some(id) = EventId::parse(row.get_ref(2)?.as_str()?) else {
        return Ok(Err(StoreError::damaged("the id of an event is not a UUID")));
    };
    // Sorted by name, as every backend shows them.
    let headers: BTreeMap<String, String> = match serde_json::from_str(row.get_ref(7)?.as_str()?) {
        Ok(headers) => headers,
        Err(error) => return Ok(Err(StoreError::damaged(error))),
    };
    let headers = headers.into_iter().map(|(name, value)| Header { name, value: value.into() });
    Ok(Ok(Stored {
        position: row.get(0)?,
        lane: Lane::of(&topic, &key),
        id,
        at: Timestamp::from_micros(row.get(1)?),
        topic,
        key,
        content_type: row.get(6)?,
        headers: headers.collect(),
        payload: Bytes::copy_from_slice(row.get_ref(8)?.as_blob()?),
    }))
}
