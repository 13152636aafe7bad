//! A queue that delivers again what is not settled, and ends when everything is done.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_messaging::consumer::{
    Arrived, Delivery, Disposition, Incoming, Partition, Receipt, Source, SourceError,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The queue; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Queue {
    shared: Arc<Shared>,
    redelivery: Option<Duration>,
    deaf: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: Vec<Item>,
    in_flight: usize,
    done: Vec<String>,
    put_back: Vec<Duration>,
    heartbeats: u32,
}

struct Item {
    incoming: Incoming,
    due: Instant,
    deliveries: u32,
    deaf: u32,
}

impl Queue {
    /// A queue that does not hear so many acknowledgements of each message.
    pub(crate) fn deaf(deaf: u32) -> Self {
        Self { deaf, ..Self::default() }
    }

    /// A queue that may deliver a message again for so long.
    pub(crate) fn redelivering_for(span: Duration) -> Self {
        Self { redelivery: Some(span), ..Self::default() }
    }

    pub(crate) fn push(&self, incoming: Incoming) {
        let item = Item { incoming, due: Instant::now(), deliveries: 0, deaf: self.deaf };
        self.shared.state.lock().unwrap().waiting.push(item);
        self.shared.changed.notify_one();
    }

    /// Which messages were acknowledged, in order.
    pub(crate) fn done(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().done.clone()
    }

    /// After how long messages were to come again.
    pub(crate) fn put_back(&self) -> Vec<Duration> {
        self.shared.state.lock().unwrap().put_back.clone()
    }

    pub(crate) fn heartbeats(&self) -> u32 {
        self.shared.state.lock().unwrap().heartbeats
    }
}

impl Source for Queue {
    type Receipt = Ticket;

    async fn next(&mut self) -> Result<Arrived<Ticket>, SourceError> {
        loop {
            let changed = self.shared.changed.notified();
            let soonest = {
                let mut state = self.shared.state.lock().unwrap();
                let now = Instant::now();
                if let Some(at) = state.waiting.iter().position(|item| item.due <= now) {
                    let mut item = state.waiting.remove(at);
                    state.in_flight += 1;
                    item.deliveries += 1;
                    let incoming =
                        Incoming { deliveries: Some(item.deliveries), ..item.incoming.clone() };
                    let receipt = Ticket { item: Some(item), shared: Arc::clone(&self.shared) };
                    return Ok(Arrived::Message(Delivery { incoming, receipt }));
                }
                if state.waiting.is_empty() && state.in_flight == 0 {
                    return Ok(Arrived::End);
                }
                state.waiting.iter().map(|item| item.due).min()
            };
            match soonest {
                Some(due) => tokio::select! { () = changed => {}, () = sleep_until(due) => {} },
                None => changed.await,
            }
        }
    }

    async fn start(&mut self, _: &Partition, _: Option<i64>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn release(&mut self, _: &[Partition]) -> Result<(), SourceError> {
        Ok(())
    }

    fn longest_redelivery(&self) -> Option<Duration> {
        self.redelivery
    }
}

/// The receipt of one delivery. Dropped, the message comes again at once.
pub(crate) struct Ticket {
    item: Option<Item>,
    shared: Arc<Shared>,
}

impl Receipt for Ticket {
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        self.shared.state.lock().unwrap().heartbeats += 1;
        Ok(Some(Duration::from_millis(30)))
    }

    async fn settle(mut self, disposition: Disposition) -> Result<(), SourceError> {
        let Some(mut item) = self.item.take() else { return Ok(()) };
        let mut state = self.shared.state.lock().unwrap();
        state.in_flight -= 1;
        match disposition {
            Disposition::Done if item.deaf == 0 => {
                state.done.push(item.incoming.broker_id.unwrap_or_default());
            }
            Disposition::Done => {
                item.deaf -= 1;
                item.due = Instant::now();
                state.waiting.push(item);
            }
            Disposition::Later(pause) => {
                state.put_back.push(pause);
                item.due = Instant::now() + pause;
                state.waiting.push(item);
            }
        }
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            let mut state = self.shared.state.lock().unwrap();
            state.in_flight -= 1;
            state.waiting.push(item);
            drop(state);
            self.shared.changed.notify_one();
        }
    }
}
