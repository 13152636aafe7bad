//! Events as columns.

use bytes::Bytes;
use hapax_core::{
    Header, StoreError, Timestamp,
    outbox::{EventId, Stored},
};
use tokio_postgres::Row;

use super::stored_lane;
use crate::row::{Id, column};

/// The format of events this version writes and reads.
pub(crate) const FORMAT: i16 = 1;

/// The columns position, format, lane, id, at, topic, key, content type, payload, and names and
/// values of the headers, from this column on.
pub(super) fn event(row: &Row, from: usize) -> Result<Stored, StoreError> {
    let format: i16 = column(row, from + 1)?;
    if format != FORMAT {
        return Err(StoreError::too_new(format!("an event of format {format}")));
    }
    let Id(id) = column(row, from + 3)?;
    let names: Option<Vec<String>> = column(row, from + 9)?;
    let values: Option<Vec<String>> = column(row, from + 10)?;
    let headers = names.unwrap_or_default().into_iter().zip(values.unwrap_or_default());
    Ok(Stored {
        position: column(row, from)?,
        lane: stored_lane(column(row, from + 2)?)?,
        id: EventId::from_bytes(*id.as_bytes()),
        at: Timestamp::from_micros(column(row, from + 4)?),
        topic: column(row, from + 5)?,
        key: column(row, from + 6)?,
        content_type: column(row, from + 7)?,
        headers: headers.map(|(name, value)| Header { name, value: value.into() }).collect(),
        payload: Bytes::from(column::<Vec<u8>>(row, from + 8)?),
    })
}
