//! A store whose type is forgotten, so that what is built on stores has no type parameter for one.

use std::{fmt, pin::Pin, sync::Arc};

use super::{Filter, Listed, Loaded, Page, Purged, Store, StoreError, Write, Written};
use crate::{
    clock::{ClockMark, ClockReading},
    fingerprint::Salt,
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    note::{Note, Noted},
    operation::OperationId,
    record::Record,
    settle::Attempt,
    step::StoredStep,
};

/// Any store. Clones share it.
///
/// It costs one allocation a call, and the engine calls once for all writes that came together.
///
/// ```
/// use hapax_core::{DynStore, Salt, Timestamp, memory};
///
/// let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let any = DynStore::from(store);
/// assert_eq!(any.salt(), Salt::from_bytes([7; 32]));
/// ```
#[derive(Clone)]
pub struct DynStore(Arc<dyn ErasedStore>);

impl<S: Store> From<S> for DynStore {
    fn from(store: S) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynStore(..)")
    }
}

/// Writes [`Store`] a second time with boxed futures, and forwards to it, from one list of its calls.
macro_rules! erase {
    ($($(#[$doc:meta])* $call:ident($($name:ident: $argument:ty),*) -> $answer:ty;)*) => {
        trait ErasedStore: Send + Sync {
            fn salt(&self) -> Salt;
            fn lanes(&self) -> usize;
            fn admit(&self, incarnation: &Incarnation);
            $(fn $call(&self, $($name: $argument),*) -> Boxed<'_, $answer>;)*
        }

        impl<S: Store> ErasedStore for S {
            fn salt(&self) -> Salt {
                Store::salt(self)
            }

            fn lanes(&self) -> usize {
                Store::lanes(self)
            }

            fn admit(&self, incarnation: &Incarnation) {
                Store::admit(self, incarnation);
            }

            $(fn $call(&self, $($name: $argument),*) -> Boxed<'_, $answer> {
                Box::pin(Store::$call(self, $($name),*))
            })*
        }

        impl DynStore {
            /// See [`Store::salt`].
            pub fn salt(&self) -> Salt {
                self.0.salt()
            }

            /// See [`Store::lanes`].
            pub fn lanes(&self) -> usize {
                self.0.lanes()
            }

            /// See [`Store::admit`].
            pub fn admit(&self, incarnation: &Incarnation) {
                self.0.admit(incarnation);
            }

            $($(#[$doc])*
            pub fn $call(
                &self,
                $($name: $argument),*
            ) -> impl Future<Output = $answer> + Send + Unpin + use<'_> {
                self.0.$call($($name),*)
            })*
        }
    };
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

erase! {
    /// See [`Store::commit`].
    commit(batch: Vec<Write>) -> Vec<Result<Written, StoreError>>;
    /// See [`Store::withdraw`].
    withdraw(attempt: Attempt) -> Result<bool, StoreError>;
    /// See [`Store::load`].
    load(ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>>;
    /// See [`Store::steps`].
    steps(id: OperationId) -> Result<Vec<StoredStep>, StoreError>;
    /// See [`Store::overdue`].
    overdue(limit: usize) -> Result<Vec<Record>, StoreError>;
    /// See [`Store::purge`].
    purge(limit: usize) -> Result<Purged, StoreError>;
    /// See [`Store::clock`].
    clock() -> Result<ClockReading, StoreError>;
    /// See [`Store::keep_clock`].
    keep_clock(mark: ClockMark) -> Result<(), StoreError>;
    /// See [`Store::incarnation`].
    incarnation() -> Result<IncarnationReading, StoreError>;
    /// See [`Store::keep_incarnation`].
    keep_incarnation(change: IncarnationChange) -> Result<bool, StoreError>;
    /// See [`Store::list`].
    list(filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError>;
    /// See [`Store::note`].
    note(note: Note) -> Result<(), StoreError>;
    /// See [`Store::notes`].
    notes(id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError>;
    /// See [`Store::watch`].
    watch(id: OperationId) -> ();
}
