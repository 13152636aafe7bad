//! The right to pursue a named operation, for as long as it is pursued.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{Body, Header, OneLine, Outcome};
use hapax_tower::client::{PursuitEvent, Watch};
use http::header::{CONTENT_TYPE, SET_COOKIE};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use crate::{
    answer::{Answer, NotKept, Warning},
    error::CallError,
    journal::{
        Journal, JournalError, OperationHold, OwnerWriteResult, PursuitEnd, PursuitProgress, Sent,
    },
    journal_answer,
    pursue::{EarlierAttempts, warn},
    pursuit_registry::PursuitGuard,
};

/// How often a lease is renewed before it would end.
const RENEWALS_PER_LEASE: u32 = 3;

/// Holds an operation: renewed while it is pursued, given up when dropped before its end.
pub(crate) struct PursuitLease {
    journal: Journal,
    hold: OperationHold,
    log: Arc<AttemptLog>,
    before: EarlierAttempts,
    ends: Instant,
    /// Whether there is nothing left to give up.
    over: bool,
    /// Those who wait in this process go on when the journal knows that nobody has it.
    turn: Option<PursuitGuard>,
}

/// Counts attempts, and passes on what it sees.
pub(crate) struct AttemptLog {
    begun: AtomicU32,
    next: Option<Arc<dyn Watch>>,
}

impl AttemptLog {
    pub(crate) fn new(next: Option<Arc<dyn Watch>>) -> Arc<Self> {
        Arc::new(Self { begun: AtomicU32::new(0), next })
    }
}

impl Watch for AttemptLog {
    fn saw(&self, event: PursuitEvent<'_>) {
        if let PursuitEvent::Begun { attempt, .. } = event {
            self.begun.fetch_max(attempt, Relaxed);
        }
        if let Some(next) = &self.next {
            next.saw(event);
        }
    }
}

impl PursuitLease {
    pub(crate) fn new(
        journal: &Journal,
        hold: OperationHold,
        log: Arc<AttemptLog>,
        (before, deadline, turn): (EarlierAttempts, Duration, PursuitGuard),
    ) -> Self {
        let (journal, ends) = (journal.clone(), Instant::now() + deadline);
        Self { journal, hold, log, before, ends, over: false, turn: Some(turn) }
    }

    /// Renews for as long as it can; ends only if somebody else has the operation now.
    pub(crate) async fn kept_up(&mut self) -> Result<Answer, CallError> {
        loop {
            sleep(self.journal.lease() / RENEWALS_PER_LEASE).await;
            match self.journal.renew(&self.hold, self.progress()).await {
                Ok(OwnerWriteResult::Done) => {}
                Ok(OwnerWriteResult::Lost { found: Some(entry) }) => {
                    self.over = true;
                    return journal_answer::told(*entry);
                }
                Ok(OwnerWriteResult::Lost { found: None }) => {
                    // A person's wish about the journal, not about the operation.
                    self.over = true;
                    tracing::warn!(name = %self.hold.name(), "forgotten while it was pursued");
                    return pending().await;
                }
                // Whoever takes it over sends the same key.
                Err(error) => tracing::warn!(
                    name = %self.hold.name(),
                    error = OneLine::of(&error).to_string(),
                    "the lease could not be renewed"
                ),
            }
        }
    }

    /// Writes down how it ended, and returns that.
    pub(crate) async fn settle(
        mut self,
        mut ended: Result<Answer, CallError>,
    ) -> Result<Answer, CallError> {
        // That it did not happen is not for one to say who has lost it to somebody else.
        let says_no = matches!(&ended, Err(CallError::Refused(_) | CallError::GaveUp(_)));
        let kept = self.write(end_of(&ended, self.before)).await;
        self.over = true;
        match kept {
            Ok(OwnerWriteResult::Lost { found: Some(entry) })
                if says_no || ended.is_err() && entry.state.answer().is_some() =>
            {
                journal_answer::told(*entry)
            }
            Ok(OwnerWriteResult::Done | OwnerWriteResult::Lost { .. }) => ended,
            Err(error) => {
                tracing::error!(
                    name = %self.hold.name(),
                    key = self.hold.key().as_str(),
                    error = OneLine::of(&error).to_string(),
                    "how the operation ended is not in the journal; a resume asks again"
                );
                warn(&mut ended, Warning::NotRecorded(error));
                ended
            }
        }
    }

    /// The same end written twice is one, so a write that failed is tried once more.
    async fn write(&self, end: PursuitEnd) -> Result<OwnerWriteResult, JournalError> {
        let attempts = self.progress().attempts;
        match self.journal.settle(&self.hold, attempts, end.clone()).await {
            Err(JournalError::Unavailable(_) | JournalError::Unconfirmed(_)) => {
                self.journal.settle(&self.hold, attempts, end).await
            }
            kept => kept,
        }
    }

    fn progress(&self) -> PursuitProgress {
        let attempts = self.before.attempts.saturating_add(self.log.begun.load(Relaxed));
        PursuitProgress { attempts, left: self.ends.saturating_duration_since(Instant::now()) }
    }
}

impl Drop for PursuitLease {
    fn drop(&mut self) {
        // Without a runtime the lease ends by itself.
        let Some(runtime) = Handle::try_current().ok().filter(|_| !self.over) else { return };
        let nothing = self.before.sent.is_none() && self.log.begun.load(Relaxed) == 0;
        let sent = if nothing { Sent::Nothing } else { Sent::Maybe };
        let (journal, hold, progress) = (self.journal.clone(), self.hold.clone(), self.progress());
        let turn = self.turn.take();
        runtime.spawn(async move {
            if let Err(error) = journal.release(&hold, progress, sent).await {
                tracing::warn!(name = %hold.name(), error = OneLine::of(&error).to_string(), "not given up in time");
            }
            drop(turn);
        });
    }
}

/// What the journal says about an end.
fn end_of(ended: &Result<Answer, CallError>, before: EarlierAttempts) -> PursuitEnd {
    match ended {
        Ok(answer) => PursuitEnd::Done(outcome(answer)),
        Err(CallError::Refused(answer)) => PursuitEnd::Refused(outcome(answer)),
        Err(error @ (CallError::Unknown(_) | CallError::WindowPassed(_))) => {
            PursuitEnd::Unknown { reason: OneLine::of(error).to_string() }
        }
        Err(error) if before.sent.is_some() => {
            PursuitEnd::Unknown { reason: OneLine::of(error).to_string() }
        }
        Err(error) => PursuitEnd::GaveUp { reason: OneLine::of(error).to_string() },
    }
}

/// What is kept of an answer: everything but cookies. Of headers over the limit, only the type.
fn outcome(answer: &Answer) -> Outcome {
    let kept = |all: bool| {
        let headers = answer
            .headers
            .iter()
            .filter(|(name, _)| if all { *name != SET_COOKIE } else { *name == CONTENT_TYPE });
        let headers = headers.map(|(name, value)| Header {
            name: name.as_str().to_owned(),
            value: bytes::Bytes::copy_from_slice(value.as_bytes()),
        });
        let body = match &answer.body {
            Ok(bytes) => Body::Kept(bytes.clone()),
            Err(NotKept { len }) => Body::NotKept { len: *len },
        };
        Outcome::new(answer.status.as_u16(), headers.collect(), body)
    };
    kept(true).or_else(|_| kept(false)).unwrap_or_else(|_| Outcome::bare(answer.status.as_u16()))
}
