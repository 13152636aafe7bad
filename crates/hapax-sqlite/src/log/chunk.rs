//! Entries of a run: four bytes of an id, and the row it may be in.
//!
//! Ids are digests, so the first bytes of them say in which part of a run an entry is: a run of `n`
//! chunks has each chunk for an equal share of all beginnings.

use hapax_core::OperationId;
use hapax_sql::TransactionFault;

/// Entries in a chunk, about: a few more than that still fit into a page.
pub(super) const CHUNK_ENTRIES: i64 = 440;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 8;

/// The beginning of an id, by which it is looked up. Several ids may share one: whoever finds a row
/// compares all of its id.
pub(crate) fn prefix(id: OperationId) -> u32 {
    let [a, b, c, d, ..] = *id.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// An id's beginning, and the row that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunEntry {
    pub(crate) prefix: u32,
    pub(crate) row: i64,
}

/// The chunk, of so many, whose entries begin like this.
pub(super) fn chunk_of(prefix: u32, chunks: i64) -> i64 {
    (i64::from(prefix) * chunks) >> 32
}

/// The first beginning that belongs into this chunk of so many; beyond the last chunk it is none.
pub(super) fn first_prefix(chunk: i64, chunks: i64) -> u64 {
    let (chunk, chunks) = (chunk.unsigned_abs(), chunks.unsigned_abs().max(1));
    (chunk << 32).div_ceil(chunks)
}

/// Entries, in order, as stored in a run that begins with this row.
pub(super) fn encode(first_row: i64, entries: &[RunEntry]) -> Result<Vec<u8>, TransactionFault> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        let row = u32::try_from(entry.row - first_row).map_err(TransactionFault::damaged)?;
        bytes.extend(entry.prefix.to_be_bytes());
        bytes.extend(row.to_be_bytes());
    }
    Ok(bytes)
}

/// The entries stored in a run that begins with this row.
pub(super) fn decode(first_row: i64, bytes: &[u8]) -> Result<Vec<RunEntry>, TransactionFault> {
    let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(TransactionFault::damaged("a part of an index ends inside an entry"));
    }
    Ok(entries.iter().map(|entry| read(first_row, entry)).collect())
}

/// The rows of the entries that begin like this.
pub(super) fn rows_of(
    prefix: u32,
    first_row: i64,
    bytes: &[u8],
) -> Result<Vec<i64>, TransactionFault> {
    let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(TransactionFault::damaged("a part of an index ends inside an entry"));
    }
    let from = entries.partition_point(|entry| read(first_row, entry).prefix < prefix);
    let found = entries[from..].iter().map(|entry| read(first_row, entry));
    Ok(found.take_while(|entry| entry.prefix == prefix).map(|entry| entry.row).collect())
}

fn read(first_row: i64, [a, b, c, d, e, f, g, h]: &[u8; ENTRY_BYTES]) -> RunEntry {
    let row = i64::from(u32::from_be_bytes([*e, *f, *g, *h]));
    RunEntry { prefix: u32::from_be_bytes([*a, *b, *c, *d]), row: first_row.wrapping_add(row) }
}
