//! The loop: takes what a source delivers, lets it be acted on, and settles it.

use std::{collections::HashMap, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures_util::FutureExt;
use hapax_core::{
    Fence,
    inbox::{LetterReason, Message, Partition, Proof},
};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until},
};

use super::{
    error::RunError,
    lanes::{DeliveryLane, Lanes},
    naming::Naming,
    options::{Options, ProgressStorage},
    source::{Arrived, Delivery, Disposition, Receipt, Source},
    worker::{DeliveryEnd, Worker},
};

/// The shortest time between two signs of work to a broker.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);
/// How many messages wait behind others for each that is acted on.
const WAITING_FOR_EACH: usize = 4;

/// A message that was delivered, and what is to be done with it.
struct Parcel<R> {
    message: Arc<Message>,
    proof: Proof,
    receipt: R,
    lane: Option<DeliveryLane>,
    /// Why it cannot be acted on at all.
    aside: Option<LetterReason>,
}

impl<R> Parcel<R> {
    fn is_of(&self, partitions: &[Partition]) -> bool {
        let place = self.message.place.as_ref();
        place.is_some_and(|place| partitions.contains(&place.partition))
    }
}

/// What a task leaves behind.
struct SettledDelivery {
    lane: Option<DeliveryLane>,
    partition: Option<Partition>,
    ended: DeliveryEnd,
}

pub(super) struct ConsumerLoop<S: Source, W> {
    source: S,
    worker: Arc<W>,
    naming: Naming,
    options: Options,
    lanes: Lanes<Parcel<S::Receipt>>,
    tasks: JoinSet<SettledDelivery>,
    /// Partitions of messages that are being acted on.
    active: HashMap<Partition, usize>,
    fences: HashMap<Partition, Fence>,
    patrol: Option<JoinHandle<()>>,
}

impl<S: Source, W: Worker> ConsumerLoop<S, W> {
    pub(super) fn new(source: S, worker: W, naming: Naming, options: Options) -> Self {
        Self {
            source,
            worker: Arc::new(worker),
            naming,
            options,
            lanes: Lanes::default(),
            tasks: JoinSet::new(),
            active: HashMap::new(),
            fences: HashMap::new(),
            patrol: None,
        }
    }

    /// Runs until the source ends, cannot go on, or `stop` does; what was begun is finished first.
    pub(super) async fn run(
        mut self,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(), RunError> {
        let mut patrols = interval(self.options.patrol);
        patrols.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            let has_room = self.tasks.len() < self.options.concurrency.max(1)
                && self.lanes.waiting() < self.options.concurrency.max(1) * WAITING_FOR_EACH;
            tokio::select! {
                biased;
                () = &mut stop => break Ok(()),
                Some(settled) = self.tasks.join_next() => self.settled(settled.ok()).await,
                _ = patrols.tick() => self.look_around(),
                arrived = self.source.next(), if has_room => {
                    let arrived = match arrived {
                        Ok(arrived) => arrived,
                        Err(error) => break Err(RunError::Source(error)),
                    };
                    match self.arrived(arrived, stop.as_mut()).await {
                        Ok(true) => {}
                        Ok(false) => break Ok(()),
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        // What waits behind others was not begun: its receipts are dropped, and it comes again.
        self.lanes = Lanes::default();
        while let Some(settled) = self.tasks.join_next().await {
            self.settled(settled.ok()).await;
        }
        if let Some(patrol) = self.patrol.take() {
            // Not aborted: a transaction is never left half-way.
            let _ = patrol.await;
        }
        ended
    }

    /// Deals with whatever came; false if there will be nothing more.
    async fn arrived(
        &mut self,
        arrived: Arrived<S::Receipt>,
        stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<bool, RunError> {
        match arrived {
            Arrived::Message(delivery) => self.take_in(delivery)?,
            Arrived::Assigned(partitions) => return self.assigned(partitions, stop).await,
            Arrived::Revoked(partitions) => self.revoked(partitions).await?,
            Arrived::End => return Ok(false),
        }
        Ok(true)
    }

    fn take_in(&mut self, delivery: Delivery<S::Receipt>) -> Result<(), RunError> {
        let Delivery { incoming, receipt } = delivery;
        let (message, nameless) = self.naming.name(incoming);
        let aside = nameless.map(LetterReason::no_id);
        let by_offset = self.options.progress == ProgressStorage::Offsets;
        let proof = match (&message.place, by_offset) {
            (_, false) => Proof::Record,
            (None, true) => return Err(RunError::NoOffset { from: message.source }),
            (Some(place), true) => match self.fences.get(&place.partition) {
                Some(fence) => Proof::Place(*fence),
                // Lost to somebody else: its receipt is dropped.
                None => return Ok(()),
            },
        };
        let lane = DeliveryLane::of(&message, by_offset);
        let parcel = Parcel { message: Arc::new(message), proof, receipt, lane, aside };
        let lane = parcel.lane.clone();
        if let Some(parcel) = self.lanes.enter(lane.as_ref(), parcel) {
            self.begin(parcel);
        }
        Ok(())
    }

    fn begin(&mut self, parcel: Parcel<S::Receipt>) {
        let worker = Arc::clone(&self.worker);
        let (heartbeat, outage_pause) = (self.options.heartbeat, self.options.outage_pause);
        let partition = parcel.message.place.as_ref().map(|place| place.partition.clone());
        if let Some(partition) = &partition {
            *self.active.entry(partition.clone()).or_default() += 1;
        }
        self.tasks.spawn(async move {
            let Parcel { message, proof, receipt, lane, aside } = parcel;
            let acting = async {
                match aside {
                    None => worker.act(message, proof).await,
                    Some(reason) => worker.put_aside(message, reason).await,
                }
            };
            let acted = AssertUnwindSafe(beating(acting, &receipt, heartbeat)).catch_unwind().await;
            let ended = acted.unwrap_or(DeliveryEnd::Again(outage_pause));
            let disposition = match ended {
                DeliveryEnd::Final => Disposition::Done,
                DeliveryEnd::Again(pause) => Disposition::Later(pause),
                DeliveryEnd::Fenced => return SettledDelivery { lane, partition, ended },
            };
            if let Err(error) = receipt.settle(disposition).await {
                // It comes again, and is answered by what is stored.
                tracing::warn!(%error, "the broker did not hear what became of a message");
            }
            SettledDelivery { lane, partition, ended }
        });
    }

    /// Lets the next message of a lane go on, or puts all of them back.
    async fn settled(&mut self, settled: Option<SettledDelivery>) {
        let Some(SettledDelivery { lane, partition, ended }) = settled else { return };
        if let Some(partition) = &partition
            && let Some(count) = self.active.get_mut(partition)
        {
            *count -= 1;
            if *count == 0 {
                self.active.remove(partition);
            }
        }
        match ended {
            DeliveryEnd::Final => {
                if let Some(parcel) = self.lanes.next(lane.as_ref()) {
                    self.begin(parcel);
                }
            }
            DeliveryEnd::Again(pause) => {
                // Nothing of the lane overtakes what comes again.
                for parcel in self.lanes.clear(lane.as_ref()) {
                    if let Err(error) = parcel.receipt.settle(Disposition::Later(pause)).await {
                        tracing::warn!(%error, "a message was not put back; it comes again later");
                    }
                }
            }
            DeliveryEnd::Fenced => {
                drop(self.lanes.clear(lane.as_ref()));
                if let Some(partition) = partition {
                    tracing::warn!(%partition, "a partition was taken by somebody else");
                    self.fences.remove(&partition);
                }
            }
        }
    }

    async fn assigned(
        &mut self,
        partitions: Vec<Partition>,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<bool, RunError> {
        for partition in partitions {
            let mut from = None;
            if self.options.progress == ProgressStorage::Offsets {
                let taken = tokio::select! {
                    biased;
                    () = &mut stop => return Ok(false),
                    taken = take(&*self.worker, &partition, self.options.outage_pause) => taken,
                };
                self.fences.insert(partition.clone(), taken.fence);
                from = taken.next;
            }
            self.source.start(&partition, from).await.map_err(RunError::Source)?;
        }
        Ok(true)
    }

    /// Finishes what was begun in these partitions, and lets go of them.
    async fn revoked(&mut self, partitions: Vec<Partition>) -> Result<(), RunError> {
        self.lanes.remove(|parcel| parcel.is_of(&partitions));
        while partitions.iter().any(|partition| self.active.contains_key(partition)) {
            let settled = self.tasks.join_next().await;
            self.settled(settled.and_then(Result::ok)).await;
        }
        for partition in &partitions {
            self.fences.remove(partition);
        }
        self.source.release(&partitions).await.map_err(RunError::Source)
    }

    fn look_around(&mut self) {
        if self.patrol.as_ref().is_none_or(JoinHandle::is_finished) {
            let worker = Arc::clone(&self.worker);
            self.patrol = Some(tokio::spawn(async move { worker.patrol().await }));
        }
    }
}

impl<S: Source, W> Drop for ConsumerLoop<S, W> {
    /// What was begun is finished even if nobody waits for it: a transaction is never left half-way.
    fn drop(&mut self) {
        self.tasks.detach_all();
    }
}

/// Takes a partition, however long its database is away.
async fn take<W: Worker>(
    worker: &W,
    partition: &Partition,
    pause: Duration,
) -> hapax_core::inbox::Taken {
    loop {
        match worker.take(partition).await {
            Ok(taken) => return taken,
            Err(error) => tracing::warn!(%error, %partition, "a partition was not taken yet"),
        }
        sleep(pause).await;
    }
}

/// Tells the broker now and then that a message is still being worked on.
async fn beating<R: Receipt>(
    acting: impl Future<Output = DeliveryEnd>,
    receipt: &R,
    heartbeat: Duration,
) -> DeliveryEnd {
    let mut acting = std::pin::pin!(acting);
    let mut next = Instant::now() + heartbeat;
    loop {
        tokio::select! {
            biased;
            ended = &mut acting => return ended,
            () = sleep_until(next) => {
                let patience = match receipt.working().await {
                    Ok(patience) => patience,
                    Err(error) => {
                        tracing::warn!(%error, "the broker did not hear that a message is worked on");
                        None
                    }
                };
                let span = patience.map_or(heartbeat, |patience| heartbeat.min(patience / 3));
                next = Instant::now() + span.max(HEARTBEAT_MIN);
            }
        }
    }
}
