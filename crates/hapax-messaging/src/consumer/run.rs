//! The loop: takes what a source delivers, lets it be acted on, and settles it.

use std::{
    collections::{HashMap, VecDeque},
    future::ready,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use hapax_core::{
    Fence,
    inbox::{LetterReason, Partition, Proof},
    limits::MESSAGES_TOGETHER_MAX,
};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    delivery::{Parcel, SettledDelivery, deliver},
    error::RunError,
    lanes::{DeliveryLane, Lanes},
    naming::Naming,
    options::{Options, ProgressStorage},
    source::{Arrived, Delivery, Disposition, Receipt as _, Source},
    worker::{DeliveryEnd, Worker},
};

/// How many messages wait behind others for each that is acted on.
const WAITING_FOR_EACH: usize = 4;

pub(super) struct ConsumerLoop<S: Source, W> {
    source: S,
    worker: Arc<W>,
    naming: Naming,
    options: Options,
    lanes: Lanes<Parcel<S::Receipt>>,
    /// Messages whose lanes are theirs, and that nobody acts on yet.
    ready: VecDeque<Parcel<S::Receipt>>,
    tasks: JoinSet<Vec<SettledDelivery>>,
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
            ready: VecDeque::new(),
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
        // At once, and not with the interval's first tick: a source may have ended by then.
        self.look_around();
        let mut patrols = interval(self.options.patrol);
        patrols.reset();
        patrols.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            let concurrency = self.options.concurrency.max(1);
            let is_free = self.tasks.len() < concurrency;
            let has_room = is_free
                && self.ready.len() < self.batch()
                && self.lanes.waiting() < concurrency * WAITING_FOR_EACH.max(self.batch());
            tokio::select! {
                biased;
                () = &mut stop => break Ok(()),
                Some(settled) = self.tasks.join_next() => {
                    self.settled(settled.unwrap_or_default()).await;
                }
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
                // The source has nothing more at hand, or a transaction is full.
                () = ready(()), if is_free && !self.ready.is_empty() => self.begin(),
            }
        };
        // What waits behind others was not begun: its receipts are dropped, and it comes again.
        self.lanes = Lanes::default();
        self.ready.clear();
        while let Some(settled) = self.tasks.join_next().await {
            self.settled(settled.unwrap_or_default()).await;
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
            Arrived::End => {
                while !self.ready.is_empty() {
                    self.begin();
                }
                return Ok(false);
            }
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
        self.ready.extend(self.lanes.enter(lane.as_ref(), parcel));
        Ok(())
    }

    /// Acts on what is ready, in a task of its own.
    fn begin(&mut self) {
        let parcels = self.next_batch();
        for partition in parcels.iter().filter_map(Parcel::partition) {
            *self.active.entry(partition).or_default() += 1;
        }
        let (worker, options) = (Arc::clone(&self.worker), self.options.clone());
        self.tasks.spawn(async move { deliver(&*worker, parcels, &options).await });
    }

    /// What is ready, and then what waits behind it, as far as one transaction takes it. Messages that
    /// are put aside go alone, and so do those of a partition whose offset is kept.
    fn next_batch(&mut self) -> VecDeque<Parcel<S::Receipt>> {
        let most = self.batch();
        let mut batch: VecDeque<_> = self.ready.pop_front().into_iter().collect();
        let can_act = |parcel: &Parcel<_>| parcel.aside.is_none();
        if !batch.iter().all(can_act) {
            return batch;
        }
        if self.options.progress == ProgressStorage::Records {
            while batch.len() < most
                && let Some(parcel) = self.ready.pop_front_if(|parcel| can_act(parcel))
            {
                batch.push_back(parcel);
            }
        }
        let mut at = 0;
        while batch.len() < most && at < batch.len() {
            let lane = batch[at].lane.clone();
            match self.lanes.behind(lane.as_ref(), can_act) {
                Some(parcel) => batch.push_back(parcel),
                None => at += 1,
            }
        }
        batch
    }

    /// Most messages of one transaction. Under a guard, what becomes of a message decides about those
    /// behind it.
    fn batch(&self) -> usize {
        match self.options.guard {
            Some(_) => 1,
            None => self.options.batch.clamp(1, MESSAGES_TOGETHER_MAX),
        }
    }

    /// Lets the lanes of these messages go on.
    async fn settled(&mut self, settled: Vec<SettledDelivery>) {
        for SettledDelivery { partition, .. } in &settled {
            if let Some(partition) = partition
                && let Some(count) = self.active.get_mut(partition)
            {
                *count -= 1;
                if *count == 0 {
                    self.active.remove(partition);
                }
            }
        }
        // What became of the last of a lane is what its lane goes by.
        let mut lanes: HashMap<DeliveryLane, SettledDelivery> = HashMap::new();
        for delivery in settled {
            if let Some(lane) = delivery.lane.clone() {
                lanes.insert(lane, delivery);
            }
        }
        for (lane, SettledDelivery { partition, ended, .. }) in lanes {
            self.lane_settled(&lane, partition, ended).await;
        }
    }

    /// Lets the next message of a lane go on, or puts all of them back.
    async fn lane_settled(
        &mut self,
        lane: &DeliveryLane,
        partition: Option<Partition>,
        ended: DeliveryEnd,
    ) {
        match ended {
            DeliveryEnd::Final => self.ready.extend(self.lanes.next(Some(lane))),
            DeliveryEnd::Again(pause) => {
                // Nothing of the lane overtakes what comes again.
                for parcel in self.lanes.clear(Some(lane)) {
                    if let Err(error) = parcel.receipt.settle(Disposition::Later(pause)).await {
                        tracing::warn!(%error, "a message was not put back; it comes again later");
                    }
                }
            }
            DeliveryEnd::Fenced => {
                drop(self.lanes.clear(Some(lane)));
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
        let is_gone = |parcel: &Parcel<_>| parcel.is_of(&partitions);
        let (gone, kept): (VecDeque<_>, _) = self.ready.drain(..).partition(is_gone);
        self.ready = kept;
        for parcel in gone {
            self.ready.extend(self.lanes.next(parcel.lane.as_ref()));
        }
        while partitions.iter().any(|partition| self.active.contains_key(partition)) {
            let Some(settled) = self.tasks.join_next().await else { break };
            self.settled(settled.unwrap_or_default()).await;
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
