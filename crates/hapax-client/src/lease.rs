//! The right to pursue a named operation, for as long as it is pursued.

use std::{
    error::Error,
    future::pending,
    iter::successors,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{Body, Header, Outcome};
use hapax_tower::client::{Event, Watch};
use http::header::{CONTENT_TYPE, SET_COOKIE};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use crate::{
    answer::{Answer, NotKept, Warning},
    error::CallError,
    flights::Mine,
    journal::{End, Hold, Journal, JournalError, Kept, Progress, Sent},
    pursue::{Before, warn},
    recorded,
};

/// How often a lease is renewed before it would end.
const RENEWALS_PER_LEASE: u32 = 3;

/// Holds an operation: renewed while it is pursued, given up when dropped before its end.
pub(crate) struct Lease {
    journal: Journal,
    hold: Hold,
    log: Arc<Log>,
    before: Before,
    ends: Instant,
    /// Whether there is nothing left to give up.
    over: bool,
    /// Those who wait in this process go on when the journal knows that nobody has it.
    turn: Option<Mine>,
}

/// Counts attempts, and passes on what it sees.
pub(crate) struct Log {
    begun: AtomicU32,
    next: Option<Arc<dyn Watch>>,
}

impl Log {
    pub(crate) fn new(next: Option<Arc<dyn Watch>>) -> Arc<Self> {
        Arc::new(Self { begun: AtomicU32::new(0), next })
    }
}

impl Watch for Log {
    fn saw(&self, event: Event<'_>) {
        if let Event::Begun { attempt, .. } = event {
            self.begun.fetch_max(attempt, Relaxed);
        }
        if let Some(next) = &self.next {
            next.saw(event);
        }
    }
}

impl Lease {
    pub(crate) fn new(
        journal: &Journal,
        hold: Hold,
        log: Arc<Log>,
        (before, deadline, turn): (Before, Duration, Mine),
    ) -> Self {
        let (journal, ends) = (journal.clone(), Instant::now() + deadline);
        Self { journal, hold, log, before, ends, over: false, turn: Some(turn) }
    }

    /// Renews for as long as it can; ends only if somebody else has the operation now.
    pub(crate) async fn kept_up(&mut self) -> Result<Answer, CallError> {
        loop {
            sleep(self.journal.lease() / RENEWALS_PER_LEASE).await;
            match self.journal.renew(&self.hold, self.progress()).await {
                Ok(Kept::Done) => {}
                Ok(Kept::Lost { found: Some(entry) }) => {
                    self.over = true;
                    return recorded::told(*entry);
                }
                Ok(Kept::Lost { found: None }) => {
                    // A person's wish about the journal, not about the operation.
                    self.over = true;
                    tracing::warn!(name = %self.hold.name(), "forgotten while it was pursued");
                    return pending().await;
                }
                // Whoever takes it over sends the same key.
                Err(error) => tracing::warn!(
                    name = %self.hold.name(),
                    error = chain(&error),
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
            Ok(Kept::Lost { found: Some(entry) })
                if says_no || ended.is_err() && entry.state.answer().is_some() =>
            {
                recorded::told(*entry)
            }
            Ok(Kept::Done | Kept::Lost { .. }) => ended,
            Err(error) => {
                tracing::error!(
                    name = %self.hold.name(),
                    key = self.hold.key().as_str(),
                    error = chain(&error),
                    "how the operation ended is not in the journal; a resume asks again"
                );
                warn(&mut ended, Warning::NotRecorded(error));
                ended
            }
        }
    }

    /// The same end written twice is one, so a write that failed is tried once more.
    async fn write(&self, end: End) -> Result<Kept, JournalError> {
        let attempts = self.progress().attempts;
        match self.journal.settle(&self.hold, attempts, end.clone()).await {
            Err(JournalError::Unavailable(_) | JournalError::Unconfirmed(_)) => {
                self.journal.settle(&self.hold, attempts, end).await
            }
            kept => kept,
        }
    }

    fn progress(&self) -> Progress {
        let attempts = self.before.attempts.saturating_add(self.log.begun.load(Relaxed));
        Progress { attempts, left: self.ends.saturating_duration_since(Instant::now()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Without a runtime the lease ends by itself.
        let Some(runtime) = Handle::try_current().ok().filter(|_| !self.over) else { return };
        let nothing = self.before.sent.is_none() && self.log.begun.load(Relaxed) == 0;
        let sent = if nothing { Sent::Nothing } else { Sent::Maybe };
        let (journal, hold, progress) = (self.journal.clone(), self.hold.clone(), self.progress());
        let turn = self.turn.take();
        runtime.spawn(async move {
            if let Err(error) = journal.release(&hold, progress, sent).await {
                tracing::warn!(name = %hold.name(), error = chain(&error), "not given up in time");
            }
            drop(turn);
        });
    }
}

/// What the journal says about an end.
fn end_of(ended: &Result<Answer, CallError>, before: Before) -> End {
    match ended {
        Ok(answer) => End::Done(outcome(answer)),
        Err(CallError::Refused(answer)) => End::Refused(outcome(answer)),
        Err(error @ (CallError::Unknown(_) | CallError::WindowPassed(_))) => {
            End::Unknown { reason: chain(error) }
        }
        Err(error) if before.sent.is_some() => End::Unknown { reason: chain(error) },
        Err(error) => End::GaveUp { reason: chain(error) },
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

/// An error and everything behind it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let sources = successors(Some(error), |error| (*error).source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
