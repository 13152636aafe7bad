//! What this client is busy with, by name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::journal::{Name, RequestDigest};

/// The named operations this client pursues now.
#[derive(Debug, Clone, Default)]
pub(crate) struct PursuitRegistry(Arc<Mutex<HashMap<Name, PursuitEntry>>>);

#[derive(Debug)]
struct PursuitEntry {
    digest: Option<RequestDigest>,
    over: watch::Receiver<()>,
}

/// Who pursues an operation.
#[derive(Debug)]
pub(crate) enum PursuitTurn {
    /// Whoever asked: for as long as it keeps this.
    Mine(PursuitGuard),
    /// Another task of this process. It is over when this says so.
    Anothers { over: watch::Receiver<()>, digest: Option<RequestDigest> },
}

/// The turn to pursue an operation; the next one's when dropped.
#[derive(Debug)]
pub(crate) struct PursuitGuard {
    flights: PursuitRegistry,
    name: Name,
    _until_over: watch::Sender<()>,
}

impl PursuitRegistry {
    /// Takes the turn, unless somebody has it. A resume does not know the request before it looks.
    pub(crate) fn enter(&self, name: &Name, digest: Option<RequestDigest>) -> PursuitTurn {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(name) {
            return PursuitTurn::Anothers { over: flight.over.clone(), digest: flight.digest };
        }
        let (until_over, over) = watch::channel(());
        flights.insert(name.clone(), PursuitEntry { digest, over });
        let flights = self.clone();
        PursuitTurn::Mine(PursuitGuard { flights, name: name.clone(), _until_over: until_over })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, PursuitEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PursuitGuard {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.name);
    }
}
