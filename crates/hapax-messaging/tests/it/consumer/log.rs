//! A log of one partition, whose broker keeps no progress: it begins where it is told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_messaging::consumer::{
    Arrived, Delivery, Disposition, Incoming, Partition, Place, Receipt, Source, SourceError,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::scene::incoming;

/// One consumer's view of a log with so many messages.
pub(crate) struct Log {
    messages: i64,
    assigned: bool,
    /// Revokes the partition after so many deliveries, and assigns it again.
    pub(crate) revoke_after: Option<u32>,
    /// What happens after two deliveries, once both are settled.
    pub(crate) meanwhile: Option<Box<dyn FnOnce() -> JoinHandle<()> + Send>>,
    happening: Option<JoinHandle<()>>,
    delivered: u32,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: Option<i64>,
    due: Option<Instant>,
    in_flight: u32,
    /// Where the partition was begun, each time.
    started: Vec<Option<i64>>,
    /// How many deliveries were unsettled when it was released.
    unsettled_at_release: Vec<u32>,
}

/// What a test sees of a log.
#[derive(Clone)]
pub(crate) struct Seen(Arc<Mutex<State>>);

impl Log {
    pub(crate) fn new(messages: i64) -> (Self, Seen) {
        let shared = Arc::<Mutex<State>>::default();
        let seen = Seen(Arc::clone(&shared));
        let log = Self {
            messages,
            assigned: false,
            revoke_after: None,
            meanwhile: None,
            happening: None,
            delivered: 0,
            shared,
        };
        (log, seen)
    }
}

impl Seen {
    pub(crate) fn started(&self) -> Vec<Option<i64>> {
        self.0.lock().unwrap().started.clone()
    }

    pub(crate) fn unsettled_at_release(&self) -> Vec<u32> {
        self.0.lock().unwrap().unsettled_at_release.clone()
    }
}

pub(crate) fn partition() -> Partition {
    Partition { source: "orders".to_owned(), number: 0 }
}

impl Source for Log {
    type Receipt = Ticket;

    async fn next(&mut self) -> Result<Arrived<Ticket>, SourceError> {
        if !self.assigned {
            self.assigned = true;
            return Ok(Arrived::Assigned(vec![partition()]));
        }
        if self.revoke_after.is_some_and(|after| self.delivered >= after) {
            self.revoke_after = None;
            self.assigned = false;
            self.shared.lock().unwrap().next = None;
            return Ok(Arrived::Revoked(vec![partition()]));
        }
        if self.delivered == 2 {
            while self.shared.lock().unwrap().in_flight > 0 {
                tokio::task::yield_now().await;
            }
            if let Some(meanwhile) = self.meanwhile.take() {
                self.happening = Some(meanwhile());
            }
            if let Some(happening) = &mut self.happening {
                happening.await.unwrap();
                self.happening = None;
            }
        }
        loop {
            let due = {
                let mut state = self.shared.lock().unwrap();
                let due = state.due.filter(|due| *due > Instant::now());
                match (due, state.next) {
                    (None, Some(offset)) if offset < self.messages => {
                        state.next = Some(offset + 1);
                        state.in_flight += 1;
                        self.delivered += 1;
                        let place = Place { partition: partition(), offset };
                        let incoming = Incoming {
                            place: Some(place),
                            ..incoming(&format!("orders/0/{offset}"), "{}")
                        };
                        let receipt = Ticket { offset, shared: Arc::clone(&self.shared) };
                        return Ok(Arrived::Message(Delivery { incoming, receipt }));
                    }
                    (None, _) if state.in_flight == 0 => return Ok(Arrived::End),
                    (due, _) => due,
                }
            };
            match due {
                Some(due) => sleep_until(due).await,
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn start(&mut self, _: &Partition, from: Option<i64>) -> Result<(), SourceError> {
        let mut state = self.shared.lock().unwrap();
        state.started.push(from);
        state.next = Some(from.unwrap_or(0));
        Ok(())
    }

    async fn release(&mut self, _: &[Partition]) -> Result<(), SourceError> {
        let mut state = self.shared.lock().unwrap();
        let unsettled = state.in_flight;
        state.unsettled_at_release.push(unsettled);
        Ok(())
    }

    fn longest_redelivery(&self) -> Option<Duration> {
        None
    }
}

pub(crate) struct Ticket {
    offset: i64,
    shared: Arc<Mutex<State>>,
}

impl Receipt for Ticket {
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        Ok(None)
    }

    async fn settle(self, disposition: Disposition) -> Result<(), SourceError> {
        if let Disposition::Later(pause) = disposition {
            let mut state = self.shared.lock().unwrap();
            state.next = state.next.map(|next| next.min(self.offset));
            state.due = Some(Instant::now() + pause);
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shared.lock().unwrap().in_flight -= 1;
    }
}
