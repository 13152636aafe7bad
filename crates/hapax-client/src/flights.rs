//! What this client is busy with, by name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::journal::{Digest, Name};

/// The named operations this client pursues now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<HashMap<Name, Flight>>>);

#[derive(Debug)]
struct Flight {
    digest: Option<Digest>,
    over: watch::Receiver<()>,
}

/// Who pursues an operation.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Whoever asked: for as long as it keeps this.
    Mine(Mine),
    /// Another task of this process. It is over when this says so.
    Anothers { over: watch::Receiver<()>, digest: Option<Digest> },
}

/// The turn to pursue an operation; the next one's when dropped.
#[derive(Debug)]
pub(crate) struct Mine {
    flights: Flights,
    name: Name,
    _until_over: watch::Sender<()>,
}

impl Flights {
    /// Takes the turn, unless somebody has it. A resume does not know the request before it looks.
    pub(crate) fn enter(&self, name: &Name, digest: Option<Digest>) -> Turn {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(name) {
            return Turn::Anothers { over: flight.over.clone(), digest: flight.digest };
        }
        let (until_over, over) = watch::channel(());
        flights.insert(name.clone(), Flight { digest, over });
        let flights = self.clone();
        Turn::Mine(Mine { flights, name: name.clone(), _until_over: until_over })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.name);
    }
}
