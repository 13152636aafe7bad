//! What the server's plugin `pgoutput` says, in version 1 of its protocol and with binary values.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use hapax_core::{
    Header, Timestamp,
    outbox::{EventId, Lane, Position, Stored},
};

use super::stream_end::StreamEnd;
use crate::outbox::FORMAT;

/// One message of the stream, as far as it matters here.
#[derive(Debug, PartialEq)]
pub(super) enum StreamMessage {
    /// The inserts of this transaction follow.
    Begin { xid: u32 },
    /// An event.
    Event(Stored),
    /// An event that this version does not understand.
    Unreadable(Position),
    /// The transaction is complete, and so is everything that committed up to here.
    Commit { end: u64 },
    /// Nothing to do about it.
    Other,
}

/// Reads messages one by one; it remembers how the rows of each table are laid out.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    tables: HashMap<u32, Layout>,
}

const COLUMNS: [&str; 10] = [
    "position",
    "format",
    "lane",
    "id",
    "at",
    "topic",
    "key",
    "content_type",
    "headers",
    "payload",
];

/// Where each of [`COLUMNS`] is found in a row.
type Layout = [usize; COLUMNS.len()];

impl Decoder {
    pub(super) fn read(&mut self, message: &[u8]) -> Result<StreamMessage, StreamEnd> {
        let mut input = Input(message);
        Ok(match input.u8()? {
            b'B' => {
                input.take(16)?;
                StreamMessage::Begin { xid: input.u32()? }
            }
            b'C' => {
                input.take(9)?;
                StreamMessage::Commit { end: input.u64()? }
            }
            b'R' => {
                self.relation(&mut input)?;
                StreamMessage::Other
            }
            b'I' => self.insert(&mut input)?,
            // Types, origins, truncations, and heartbeats: all that counts is that they came.
            _ => StreamMessage::Other,
        })
    }

    fn relation(&mut self, input: &mut Input<'_>) -> Result<(), StreamEnd> {
        let table = input.u32()?;
        let (schema, name) = (input.text()?, input.text()?);
        input.u8()?;
        let names: Vec<_> = (0..input.u16()?)
            .map(|_| {
                input.u8()?;
                let name = input.text()?;
                input.take(8)?;
                Ok(name)
            })
            .collect::<Result<_, StreamEnd>>()?;
        if (schema, name) != ("hapax", "outbox") {
            return Ok(());
        }
        let mut layout = Layout::default();
        for (place, wanted) in layout.iter_mut().zip(COLUMNS) {
            let found = names.iter().position(|name| *name == wanted);
            *place = found.ok_or(StreamEnd::Garbled("the table lacks a column"))?;
        }
        self.tables.insert(table, layout);
        Ok(())
    }

    fn insert(&self, input: &mut Input<'_>) -> Result<StreamMessage, StreamEnd> {
        let Some(layout) = self.tables.get(&input.u32()?) else { return Ok(StreamMessage::Other) };
        input.u8()?;
        let values: Vec<_> = (0..input.u16()?)
            .map(|_| {
                Ok(match input.u8()? {
                    b'b' => {
                        let len = usize::try_from(input.u32()?).unwrap_or(usize::MAX);
                        Some(input.take(len)?)
                    }
                    b'n' => None,
                    _ => return Err(StreamEnd::Garbled("a value is not binary")),
                })
            })
            .collect::<Result<_, StreamEnd>>()?;
        let value = |column: usize| values.get(layout[column]).copied().flatten();
        let position =
            value(0).and_then(i64_of).ok_or(StreamEnd::Garbled("a row has no position"))?;
        Ok(event(position, value).map_or(StreamMessage::Unreadable(position), StreamMessage::Event))
    }
}

/// The event of these values; `None` if it is not understood.
fn event<'a>(position: Position, value: impl Fn(usize) -> Option<&'a [u8]>) -> Option<Stored> {
    let text = |column| String::from_utf8(value(column)?.to_vec()).ok();
    if value(1).and_then(i16_of)? != FORMAT {
        return None;
    }
    Some(Stored {
        position,
        lane: value(2).and_then(i16_of).and_then(Lane::from_number)?,
        id: EventId::from_bytes(value(3)?.try_into().ok()?),
        at: Timestamp::from_micros(value(4).and_then(i64_of)?),
        topic: text(5)?,
        key: text(6)?,
        content_type: text(7)?,
        headers: headers(value(8)?)?,
        // A copy: what is kept would keep everything alive that came with it.
        payload: Bytes::copy_from_slice(value(9)?),
    })
}

/// Binary `jsonb` is a version and text.
fn headers(value: &[u8]) -> Option<Vec<Header>> {
    let (1, json) = value.split_first().map(|(version, json)| (*version, json))? else {
        return None;
    };
    if json == b"{}" {
        return Some(Vec::new());
    }
    let headers: BTreeMap<String, String> = serde_json::from_slice(json).ok()?;
    Some(headers.into_iter().map(|(name, value)| Header { name, value: value.into() }).collect())
}

fn i64_of(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

fn i16_of(bytes: &[u8]) -> Option<i16> {
    bytes.try_into().ok().map(i16::from_be_bytes)
}

/// Bytes still to be read.
#[derive(Debug)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], StreamEnd> {
        let cut =
            self.0.split_at_checked(len).ok_or(StreamEnd::Garbled("a message is too short"))?;
        self.0 = cut.1;
        Ok(cut.0)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StreamEnd> {
        self.take(N)?.try_into().map_err(|_| StreamEnd::Garbled("a message is too short"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, StreamEnd> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, StreamEnd> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, StreamEnd> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, StreamEnd> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'a str, StreamEnd> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = self.take(end.ok_or(StreamEnd::Garbled("a text has no end"))?)?;
        self.u8()?;
        std::str::from_utf8(text).map_err(|_| StreamEnd::Garbled("a name is not UTF-8"))
    }
}
