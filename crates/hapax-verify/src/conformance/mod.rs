//! One suite that proves every store equal.
//!
//! A backend's test file is a [`Backend`] and one line. A bug found in one store becomes a case
//! here, for all of them.

use hapax_core::{Faults, OperationId, Store};

/// What the suite needs from a store under test.
pub trait Backend: Sized + Send + Sync + 'static {
    /// The store.
    type Store: Store;

    /// The places of [`Faults`] this store passes on its way to and from storage.
    const PLACES: &'static [&'static str];

    /// An empty database of its own.
    fn create() -> impl Future<Output = Self> + Send;

    /// Opens the database, as another process would.
    fn open(&self, faults: Faults) -> impl Future<Output = Self::Store> + Send;

    /// Moves the clock of the database, for everyone who has it open.
    fn step_clock(&self, micros: i64) -> impl Future<Output = ()> + Send;

    /// Changes what is stored behind the store's back.
    fn damage(&self, id: OperationId, damage: Damage) -> impl Future<Output = ()> + Send;
}

/// A way in which stored bytes go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// One bit of the stored body is flipped.
    FlippedBodyBit,
    /// The outcome of a finished record is gone.
    LostOutcome,
    /// The row's state is a number no version ever wrote.
    UnknownState,
    /// The row's format is one higher than this version's.
    NewerRow,
    /// The outcome head's format is one higher than this version's.
    NewerOutcome,
}
