//! What was delivered, acted on: together or one by one, and settled.

use std::{
    collections::{HashMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use hapax_core::inbox::{LetterReason, Message, Partition, Proof};
use tokio::time::{Instant, sleep_until};

use super::{
    lanes::DeliveryLane,
    options::Options,
    source::{Disposition, Receipt},
    worker::{Acceptance, DeliveryEnd, Worker},
};

/// The shortest time between two signs of work to a broker.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// A message that was delivered, and what is to be done with it.
pub(super) struct Parcel<R> {
    pub(super) message: Arc<Message>,
    pub(super) proof: Proof,
    pub(super) receipt: R,
    pub(super) lane: Option<DeliveryLane>,
    /// Why it cannot be acted on at all.
    pub(super) aside: Option<LetterReason>,
}

impl<R> Parcel<R> {
    pub(super) fn is_of(&self, partitions: &[Partition]) -> bool {
        let place = self.message.place.as_ref();
        place.is_some_and(|place| partitions.contains(&place.partition))
    }

    pub(super) fn partition(&self) -> Option<Partition> {
        self.message.place.as_ref().map(|place| place.partition.clone())
    }

    fn acceptance(&self) -> Acceptance {
        Acceptance { message: Arc::clone(&self.message), proof: self.proof }
    }
}

/// What became of a parcel.
pub(super) struct SettledDelivery {
    pub(super) lane: Option<DeliveryLane>,
    pub(super) partition: Option<Partition>,
    pub(super) ended: DeliveryEnd,
}

/// Acts on parcels, and tells the broker what became of each. Those of one lane are in their order.
pub(super) async fn deliver<R: Receipt, W: Worker>(
    worker: &W,
    mut parcels: VecDeque<Parcel<R>>,
    options: &Options,
) -> Vec<SettledDelivery> {
    let together = if parcels.len() > 1 {
        let messages: Vec<_> = parcels.iter().map(Parcel::acceptance).collect();
        let acting = worker.act_together(&messages);
        careful(beating(acting, &parcels, options.heartbeat), Some(again(options))).await
    } else {
        None
    };
    let mut settled = Vec::with_capacity(parcels.len());
    // Lanes of which something comes again, or is somebody else's: nothing overtakes it.
    let mut stopped: HashMap<DeliveryLane, DeliveryEnd> = HashMap::new();
    while let Some(parcel) = parcels.front() {
        let earlier = parcel.lane.as_ref().and_then(|lane| stopped.get(lane)).copied();
        let ended = match together.or(earlier) {
            Some(ended) => ended,
            None => {
                let acting = act_alone(worker, parcel);
                careful(beating(acting, &parcels, options.heartbeat), again(options)).await
            }
        };
        let Some(parcel) = parcels.pop_front() else { break };
        let partition = parcel.partition();
        let Parcel { receipt, lane, .. } = parcel;
        if let Some(lane) = &lane
            && ended != DeliveryEnd::Final
        {
            stopped.insert(lane.clone(), ended);
        }
        settle(receipt, ended).await;
        settled.push(SettledDelivery { lane, partition, ended });
    }
    settled
}

async fn act_alone<R, W: Worker>(worker: &W, parcel: &Parcel<R>) -> DeliveryEnd {
    let message = Arc::clone(&parcel.message);
    match &parcel.aside {
        None => worker.act(message, parcel.proof).await,
        Some(reason) => worker.put_aside(message, reason.clone()).await,
    }
}

async fn settle<R: Receipt>(receipt: R, ended: DeliveryEnd) {
    let disposition = match ended {
        DeliveryEnd::Final => Disposition::Done,
        DeliveryEnd::Again(pause) => Disposition::Later(pause),
        DeliveryEnd::Fenced => return,
    };
    if let Err(error) = receipt.settle(disposition).await {
        // It comes again, and is answered by what is stored.
        tracing::warn!(%error, "the broker did not hear what became of a message");
    }
}

fn again(options: &Options) -> DeliveryEnd {
    DeliveryEnd::Again(options.outage_pause)
}

/// What this comes to, or the other if it panics.
async fn careful<T>(acting: impl Future<Output = T>, or: T) -> T {
    AssertUnwindSafe(acting).catch_unwind().await.unwrap_or(or)
}

/// Tells the broker now and then that messages are still being worked on, or wait for those that are.
async fn beating<T, R: Receipt>(
    acting: impl Future<Output = T>,
    parcels: &VecDeque<Parcel<R>>,
    heartbeat: Duration,
) -> T {
    let mut acting = std::pin::pin!(acting);
    let mut next = Instant::now() + heartbeat;
    loop {
        tokio::select! {
            biased;
            ended = &mut acting => return ended,
            () = sleep_until(next) => {
                let mut span = heartbeat;
                for parcel in parcels {
                    match parcel.receipt.working().await {
                        Ok(patience) => {
                            span = patience.map_or(span, |patience| span.min(patience / 3));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "the broker did not hear that a message is worked on");
                        }
                    }
                }
                next = Instant::now() + span.max(HEARTBEAT_MIN);
            }
        }
    }
}
