//! Walking over the table of operations piece by piece, in the order in which it lies on disk.
//!
//! A walk needs no index, so writers pay nothing for it. Rows that are written at the same time lie
//! side by side, so a piece costs little, and what is past its time comes in whole pieces.

use std::sync::{Mutex, PoisonError};

use crate::{connection::SharedConnection, error::StatementFailure, row::column};

const BLOCKS: &str = "SELECT pg_relation_size('hapax.operations') \
                      / current_setting('block_size')::int8";

/// How many blocks the table has.
pub(crate) async fn blocks(wire: &SharedConnection) -> Result<i64, StatementFailure> {
    let rows = wire.query(BLOCKS, &[]).await?;
    rows.first().map_or(Ok(0), |row| column(row, 0))
}

/// How far a walk has come. Each process walks for itself, from wherever chance put it.
#[derive(Debug)]
pub(crate) struct HeapLap {
    next: Mutex<i64>,
}

impl Default for HeapLap {
    fn default() -> Self {
        Self { next: Mutex::new(fastrand::i64(0..i64::MAX)) }
    }
}

/// Blocks of the table, the last not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    from: i64,
    to: i64,
}

impl Piece {
    pub(crate) fn blocks(self) -> i64 {
        self.to - self.from
    }

    /// The places it lies between, as PostgreSQL writes them.
    pub(crate) fn bounds(self) -> (String, String) {
        (format!("({},0)", self.from), format!("({},0)", self.to))
    }
}

impl HeapLap {
    /// The next piece of a table of so many blocks; a table that is not larger than a piece is one.
    pub(crate) fn piece(&self, blocks: i64, most: i64) -> Piece {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks <= most {
            return Piece { from: 0, to: blocks };
        }
        let from = next.rem_euclid(blocks);
        let to = (from + most).min(blocks);
        *next = to;
        Piece { from, to }
    }

    /// Has the walk begin with this piece again.
    pub(crate) fn again(&self, piece: Piece) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = piece.from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_meets_every_block_of_a_table_that_grows_and_shrinks() {
        let lap = HeapLap::default();
        for blocks in [1000, 1700, 300] {
            let mut met = vec![false; blocks];
            let size = i64::try_from(blocks).unwrap();
            for _ in 0..=blocks.div_ceil(64) {
                let Piece { from, to } = lap.piece(size, 64);
                met[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()].fill(true);
            }
            assert!(met.iter().all(|met| *met), "{blocks} blocks");
        }
    }

    #[test]
    fn a_piece_that_is_not_done_comes_again() {
        let lap = HeapLap::default();
        let piece = lap.piece(1000, 64);
        lap.again(piece);
        assert_eq!(lap.piece(1000, 64), piece);
    }
}
