//! Watches which database the store is, and sees to it that nothing it has forgotten is run again.
//!
//! Every look compares the store with what is kept in it and with what was seen before. Where the past may have been
//! lost, nothing is written until this process has put back what it was told is there; and as long as nobody
//! knows what others were told, what is absent is not run.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{
    StoreError,
    incarnation::{
        Finding, IncarnationChange, IncarnationMark, IncarnationReading, IncarnationSeen,
        LossCause, ProcessMark, Quarantine, compare, ended, first_mark, may_end, noted,
    },
    limits::{ACKNOWLEDGED_KEPT, PROCESS_LISTED, PROCESS_SEEN_EVERY, PROCESS_SILENT_MAX},
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, watch},
    time::{Instant, sleep},
};

use crate::{batcher::Gate, engine::Inner, in_flight::InFlightPhase, restore::restore};

/// Times the mark is read anew because somebody else was faster.
const ROUNDS_MAX: u32 = 16;
/// The least time between two looks.
const LOOKS_APART: Duration = Duration::from_millis(200);
/// How often it is asked whether everything under way has come to its end.
const IDLE_ASKED_EVERY: Duration = Duration::from_millis(5);

/// What this process knows about its store's past.
#[derive(Debug)]
pub(crate) struct PastWatch {
    process: i64,
    /// Held by whoever looks.
    known: AsyncMutex<Known>,
    has_looked: AtomicBool,
    quarantine: Mutex<Option<Quarantine>>,
    /// Something went wrong that a look might explain.
    hurry: Notify,
}

#[derive(Debug, Default)]
struct Known {
    seen: Option<IncarnationSeen>,
    /// The last signs of life, oldest first.
    signs: VecDeque<Sign>,
    vouches: bool,
}

/// A sign of life that is stored: whatever was acknowledged before it was sent is there where it is.
#[derive(Debug, Clone, Copy)]
struct Sign {
    position: i64,
    sent_at: Instant,
}

impl PastWatch {
    pub(crate) fn new(process: i64) -> Self {
        Self {
            process,
            known: AsyncMutex::default(),
            has_looked: AtomicBool::new(false),
            quarantine: Mutex::default(),
            hurry: Notify::new(),
        }
    }

    /// Has somebody look soon.
    pub(crate) fn hurry(&self) {
        self.hurry.notify_one();
    }

    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_quarantine(&self, quarantine: Option<&Quarantine>) {
        *self.quarantine.lock().unwrap_or_else(PoisonError::into_inner) = quarantine.cloned();
    }
}

/// Looks at every interval, and sooner where something went wrong, until told to stop.
pub(crate) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    loop {
        let looked = inner.look_at_incarnation().await;
        let pause = if looked.is_ok() { PROCESS_SEEN_EVERY } else { LOOKS_APART };
        if let Err(error) = looked {
            tracing::debug!(%error, "the store's incarnation could not be looked at");
            inner.stay_silent().await;
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(LOOKS_APART) => {}
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = inner.past.hurry.notified() => {}
            () = sleep(pause.saturating_sub(LOOKS_APART)) => {}
        }
    }
}

impl Inner {
    /// Looks unless that was done before. Nothing is claimed by a process that never looked.
    pub(crate) async fn know_incarnation(&self) -> Result<(), StoreError> {
        if self.past.has_looked.load(Relaxed) { Ok(()) } else { self.look_at_incarnation().await }
    }

    /// Looks which database the store is, and does what follows from it.
    pub(crate) async fn look_at_incarnation(&self) -> Result<(), StoreError> {
        let mut known = self.past.known.lock().await;
        for _ in 0..ROUNDS_MAX {
            if self.look(&mut known).await? {
                self.past.has_looked.store(true, Relaxed);
                return Ok(());
            }
        }
        Err(StoreError::unavailable("others kept changing what the store keeps about its past"))
    }

    /// One step; says whether it was the last.
    async fn look(&self, known: &mut Known) -> Result<bool, StoreError> {
        let reading = self.store.incarnation().await?;
        match (compare(&reading, known.seen.as_ref()), &reading.mark) {
            (Finding::New, _) => {
                self.keep(&reading, first_mark(&reading), None).await?;
                Ok(false)
            }
            (Finding::Changed(cause), _) => {
                self.batcher.set_gate(Gate::Closed);
                let mark = noted(&reading, known.seen.as_ref(), cause);
                let (before, now) = (quarantined_from(&mark), mark.incarnation.to_string());
                if self.keep(&reading, mark, None).await? {
                    let cause = cause.as_str();
                    tracing::error!(
                        cause,
                        before,
                        now,
                        "the store may have forgotten what it acknowledged"
                    );
                }
                Ok(false)
            }
            (Finding::Noted, Some(mark)) => self.check_what_was_told(known, &reading, mark).await,
            (Finding::Same, Some(mark)) => self.go_on(known, &reading, mark).await,
            (Finding::Noted | Finding::Same, None) => Ok(false),
            (Finding::Outdated, _) => Err(StoreError::unavailable(format!(
                "an old primary answers ({}), and this process has gone on with its successor: stop that server, or \
                 restart this process if it is meant",
                reading.incarnation
            ))),
        }
    }

    /// Puts back what this process was told is there, and says whether that is all of it.
    async fn check_what_was_told(
        &self,
        known: &mut Known,
        reading: &IncarnationReading,
        mark: &IncarnationMark,
    ) -> Result<bool, StoreError> {
        self.batcher.set_gate(Gate::Closed);
        self.nothing_is_under_way().await;
        self.store.admit(&reading.incarnation);
        // The last sign of life that is in the new database: what was acknowledged before it is there too.
        let survived = known.signs.iter().rev().find(|sign| sign.position <= mark.began);
        let lost_since = survived.map_or(self.began, |sign| sign.sent_at);
        let restored = restore(self, &self.acknowledged.since(lost_since)).await?;
        let vouches = survived.is_some_and(|sign| self.acknowledged.reaches_back_to(sign.sent_at));
        let mut next = moved_on(mark);
        if let Some(quarantine) = &mut next.quarantine
            && quarantine.cause == LossCause::Failover
            && !vouches
        {
            quarantine.cause = LossCause::Restore;
        }
        let (position, sent_at) = (next.position, Instant::now());
        let present = self.sign_of_life(reading, vouches);
        if self.keep(reading, next.clone(), Some(present)).await? {
            known.seen = Some(seen(&next));
            known.signs = VecDeque::from([Sign { position, sent_at }]);
            known.vouches = vouches;
            tracing::warn!(
                restored,
                vouches,
                "compared the store with what it had acknowledged here"
            );
        }
        Ok(false)
    }

    /// Gives a sign of life where one is due, and lets run what may.
    async fn go_on(
        &self,
        known: &mut Known,
        reading: &IncarnationReading,
        mark: &IncarnationMark,
    ) -> Result<bool, StoreError> {
        if known.seen.is_none() {
            self.store.admit(&reading.incarnation);
        }
        let is_over = may_end(reading);
        let mut next = mark.clone();
        if is_over || self.is_sign_due(known, reading) {
            next = moved_on(mark);
            if is_over {
                next = ended(reading, next);
            }
            let (position, sent_at) = (next.position, Instant::now());
            let present = self.sign_of_life(reading, known.vouches);
            if !self.keep(reading, next.clone(), Some(present)).await? {
                return Ok(false);
            }
            if is_over {
                tracing::warn!("everybody who was at work before the change is accounted for");
            }
            known.signs.push_back(Sign { position, sent_at });
            while known.signs.front().is_some_and(|sign| sent_at - sign.sent_at > ACKNOWLEDGED_KEPT)
            {
                known.signs.pop_front();
            }
        }
        known.seen = Some(seen(&next));
        self.tell_of_quarantine(next.quarantine.as_ref());
        self.past.set_quarantine(next.quarantine.as_ref());
        let is_open = next.quarantine.is_none();
        self.batcher.set_gate(if is_open { Gate::Open } else { Gate::Quarantined });
        Ok(true)
    }

    /// On a store that can fail over at every interval, on others after something was acknowledged.
    fn is_sign_due(&self, known: &Known, reading: &IncarnationReading) -> bool {
        let Some(last) = known.signs.back() else { return true };
        let can_fail_over = reading.incarnation.timeline() > 0;
        let is_time = last.sent_at.elapsed() >= PROCESS_SEEN_EVERY - LOOKS_APART;
        is_time && (can_fail_over || self.acknowledged.has_newer_than(last.sent_at))
    }

    fn sign_of_life(&self, reading: &IncarnationReading, vouches: bool) -> ProcessMark {
        ProcessMark {
            process: self.past.process,
            incarnation: reading.incarnation.clone(),
            seen_at: reading.now,
            synchronous: reading.synchronous,
            vouches,
        }
    }

    async fn keep(
        &self,
        reading: &IncarnationReading,
        mark: IncarnationMark,
        present: Option<ProcessMark>,
    ) -> Result<bool, StoreError> {
        let expected = reading.mark.as_ref().map(|mark| mark.position);
        let is_gone = |process: &&ProcessMark| {
            mark.quarantine.is_none() && process.seen_at.plus(PROCESS_LISTED) < reading.now
        };
        let gone =
            reading.processes.iter().filter(is_gone).map(|process| process.process).collect();
        self.store.keep_incarnation(IncarnationChange { expected, mark, present, gone }).await
    }

    /// Begins nothing more once the last sign of life is so old that others take this process for gone.
    async fn stay_silent(&self) {
        let known = self.past.known.lock().await;
        let can_fail_over = known.seen.as_ref().is_some_and(|seen| seen.incarnation.timeline() > 0);
        let is_silent =
            known.signs.back().is_some_and(|sign| sign.sent_at.elapsed() > PROCESS_SILENT_MAX);
        if can_fail_over && is_silent {
            self.batcher.set_gate(Gate::Closed);
        }
    }

    /// Ends when what was claimed before the gate was closed has its answer.
    async fn nothing_is_under_way(&self) {
        for flight in self.flights.all() {
            if matches!(flight.phase(), InFlightPhase::Claiming) {
                flight.claimed().await;
            }
        }
        while !self.batcher.is_idle() {
            sleep(IDLE_ASKED_EVERY).await;
        }
    }

    /// Strikes this process off the list of those at work: everything it was told is older than that.
    pub(crate) async fn sign_off(&self) -> Result<(), StoreError> {
        let known = self.past.known.lock().await;
        let Some(seen) = known.seen.as_ref().filter(|seen| seen.incarnation.timeline() > 0) else {
            return Ok(());
        };
        for _ in 0..ROUNDS_MAX {
            let reading = self.store.incarnation().await?;
            let (Finding::Same, Some(mark)) = (compare(&reading, Some(seen)), &reading.mark) else {
                return Ok(());
            };
            let (expected, gone) = (Some(mark.position), vec![self.past.process]);
            let change = IncarnationChange { expected, mark: moved_on(mark), present: None, gone };
            if self.store.keep_incarnation(change).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn tell_of_quarantine(&self, now: Option<&Quarantine>) {
        match (self.past.quarantine(), now) {
            (None, Some(quarantine)) => {
                let (cause, before) = (quarantine.cause.as_str(), quarantine.before.to_string());
                tracing::error!(
                    cause,
                    before,
                    "the store is quarantined: keys that are not in it are not run until \
                     `hapax quarantine lift`"
                );
            }
            (Some(_), None) => {
                tracing::warn!("the quarantine is over: keys that are not there run")
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

fn quarantined_from(mark: &IncarnationMark) -> String {
    mark.quarantine.as_ref().map_or_else(String::new, |quarantine| quarantine.before.to_string())
}

/// The same mark, one position on.
fn moved_on(mark: &IncarnationMark) -> IncarnationMark {
    IncarnationMark { position: mark.position + 1, ..mark.clone() }
}

fn seen(mark: &IncarnationMark) -> IncarnationSeen {
    let IncarnationMark { incarnation, position, began, .. } = mark.clone();
    IncarnationSeen { incarnation, position, began }
}
