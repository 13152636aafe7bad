//! An outbox whose type is forgotten: whoever runs the gateway knows which one it is.

use std::{fmt, pin::Pin, sync::Arc};

use hapax_core::{
    StoreError,
    outbox::{
        Lag, OutboxAdmin, Parked, ParkedPage, Registered, Selection, find_parked, replay_order,
    },
};

/// Any outbox, as far as people look after it here. Clones share it.
#[derive(Clone)]
pub(in crate::admin) struct DynOutbox(Arc<dyn ErasedOutbox>);

impl DynOutbox {
    pub(in crate::admin) fn new(outbox: impl OutboxAdmin + 'static) -> Self {
        Self(Arc::new(outbox))
    }
}

impl fmt::Debug for DynOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynOutbox(..)")
    }
}

impl std::ops::Deref for DynOutbox {
    type Target = dyn ErasedOutbox;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// [`OutboxAdmin`] with boxed futures.
pub(in crate::admin) trait ErasedOutbox: Send + Sync {
    fn destinations(&self) -> Answer<'_, Vec<Registered>>;
    fn lag<'a>(&'a self, destination: &'a str) -> Answer<'a, Option<Lag>>;
    fn parked<'a>(
        &'a self,
        destination: &'a str,
        selection: &'a Selection,
        page: ParkedPage,
    ) -> Answer<'a, Vec<Parked>>;
    fn replay_order<'a>(
        &'a self,
        destination: &'a str,
        selection: &'a Selection,
        limit: usize,
    ) -> Answer<'a, Vec<Parked>>;
    fn replay<'a>(&'a self, destination: &'a str, selection: Selection) -> Answer<'a, usize>;
    fn set_paused<'a>(&'a self, destination: &'a str, paused: bool) -> Answer<'a, bool>;
}

impl<O: OutboxAdmin + 'static> ErasedOutbox for O {
    fn destinations(&self) -> Answer<'_, Vec<Registered>> {
        Box::pin(OutboxAdmin::destinations(self))
    }

    fn lag<'a>(&'a self, destination: &'a str) -> Answer<'a, Option<Lag>> {
        Box::pin(OutboxAdmin::lag(self, destination))
    }

    fn parked<'a>(
        &'a self,
        destination: &'a str,
        selection: &'a Selection,
        page: ParkedPage,
    ) -> Answer<'a, Vec<Parked>> {
        Box::pin(find_parked(self, destination, selection, page))
    }

    fn replay_order<'a>(
        &'a self,
        destination: &'a str,
        selection: &'a Selection,
        limit: usize,
    ) -> Answer<'a, Vec<Parked>> {
        Box::pin(replay_order(self, destination, selection, limit))
    }

    fn replay<'a>(&'a self, destination: &'a str, selection: Selection) -> Answer<'a, usize> {
        Box::pin(OutboxAdmin::replay(self, destination, selection))
    }

    fn set_paused<'a>(&'a self, destination: &'a str, paused: bool) -> Answer<'a, bool> {
        Box::pin(self.set_paused(destination, paused))
    }
}
