//! What is done with the right to run an operation: the effect, its record, the answer.

use std::{sync::Arc, time::Duration};

use hapax_core::{Attempt, AttemptEnd, Body, Outcome, Record, Recovery};
use hapax_engine::{Permit, Settled};
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    args::{RecordMistake, RecordVictimArgs},
    journal::{CallerJournal, JournalLine},
    upstream::{FileUpstream, Outdated},
    work::{Work, WorkKind},
};
use crate::{
    error::CrashError,
    place::{self, Doom},
};

/// Whether a caller has heard what became of its operation.
pub(crate) enum Heard {
    TheEnd,
    Later,
}

#[derive(Debug)]
pub(crate) struct Hand {
    journal: CallerJournal,
    upstream: FileUpstream,
    doom: Doom,
    broken: Option<RecordMistake>,
}

impl Hand {
    pub(crate) fn new(args: &RecordVictimArgs, doom: Doom) -> Result<Self, CrashError> {
        let journal = CallerJournal::open(&args.dir.join(CallerJournal::NAME))?;
        let upstream = FileUpstream::at(args.dir.join(FileUpstream::NAME))?;
        Ok(Self { journal, upstream, doom, broken: args.broken })
    }

    /// Has the effect, settles, and tells the client.
    pub(crate) async fn perform(
        self: &Arc<Self>,
        work: Work,
        permit: Permit,
        recovery: Option<Recovery>,
    ) -> Result<Heard, CrashError> {
        match self.settled(work, permit, recovery).await? {
            Some(record) if record.outcome().is_some() => self.tell(work, &record),
            _ => Ok(Heard::Later),
        }
    }

    /// Finishes what somebody else left behind; nobody waits for the answer.
    pub(crate) async fn finish(self: Arc<Self>, permit: Permit, recovery: Recovery) {
        let record = permit.record();
        let Ok(work) = record.operation.key().as_str().parse::<Work>() else { return };
        let finished = if permit.record().request() == Some(&work.request()) {
            self.settled(work, permit, Some(recovery)).await.map(drop)
        } else {
            self.note(&JournalLine::Absurd { work, what: "request".to_owned() })
        };
        if finished.is_err() {
            // Nobody would hear of it: the victim ends, and its hunter asks why.
            std::process::abort();
        }
    }

    async fn settled(
        self: &Arc<Self>,
        work: Work,
        permit: Permit,
        recovery: Option<Recovery>,
    ) -> Result<Option<Arc<Record>>, CrashError> {
        let attempt = permit.attempt();
        let (fence, owner) = (attempt.fence.get(), attempt.owner.0);
        self.note(&JournalLine::Attempt { work, fence, owner })?;
        self.doom.pass(place::BEGUN);
        if recovery.is_some() {
            self.doom.pass(place::TAKEN);
        }
        sleep(delay()).await;
        let hand = Arc::clone(self);
        let acted = spawn_blocking(move || hand.act(work, &attempt, recovery)).await;
        let acted = acted.map_err(CrashError::refused("act"))??;
        let ended = match acted {
            Ok(effect) => {
                if self.broken == Some(RecordMistake::AckBeforeSettle) {
                    self.note(&JournalLine::Told { work, status: DONE, effect: effect.clone() })?;
                }
                if recovery.is_some() {
                    self.doom.pass(place::RECOVERED);
                }
                self.doom.pass(place::EFFECT);
                sleep(delay()).await;
                AttemptEnd::completed(outcome(effect)?)
            }
            Err(Outdated) => match recovery {
                None => AttemptEnd::NothingSent,
                Some(recovery) => AttemptEnd::NothingSent.following(recovery),
            },
        };
        let settled = permit.settle(ended).await;
        self.doom.pass(place::SETTLED);
        Ok(match settled {
            Ok(Settled::Done(record)) => Some(record),
            Ok(Settled::Superseded(record)) => record,
            Err(_) => None,
        })
    }

    /// Has the effect as the upstream of this kind of operation allows.
    fn act(
        &self,
        work: Work,
        attempt: &Attempt,
        recovery: Option<Recovery>,
    ) -> Result<Result<String, Outdated>, CrashError> {
        match (work.kind, recovery) {
            (WorkKind::Hold, _) => self.upstream.act(work, attempt).map(Ok),
            (WorkKind::Resend | WorkKind::Queue, _) => {
                self.upstream.act_once(work, attempt).map(Ok)
            }
            (WorkKind::Probe, Some(_)) if self.broken != Some(RecordMistake::ProbeBlind) => {
                let found = match self.upstream.ask(work, attempt)? {
                    Ok(found) => found,
                    Err(outdated) => return Ok(Err(outdated)),
                };
                self.doom.pass(place::ASKED);
                match found {
                    Some(effect) => Ok(Ok(effect)),
                    None => self.upstream.act_fenced(work, attempt),
                }
            }
            (WorkKind::Probe, _) => self.upstream.act_fenced(work, attempt),
        }
    }

    /// Answers a client with what is stored.
    pub(crate) fn tell(&self, work: Work, record: &Record) -> Result<Heard, CrashError> {
        let Some(outcome) = record.outcome() else { return Ok(Heard::Later) };
        let effect = effect(outcome).unwrap_or_else(|| "nothing".to_owned());
        self.note(&JournalLine::Told { work, status: outcome.status(), effect })?;
        Ok(Heard::TheEnd)
    }

    /// Answers a client that nobody knows.
    pub(crate) fn doubt(&self, work: Work) -> Result<Heard, CrashError> {
        self.note(&JournalLine::Doubted { work })?;
        if self.broken == Some(RecordMistake::RerunHeld) {
            let attempt = Attempt {
                id: hapax_core::OperationId::from_bytes([0; 16]),
                fence: hapax_core::Fence::FIRST,
                owner: hapax_core::Owner(0),
            };
            self.upstream.act(work, &attempt)?;
        }
        Ok(Heard::TheEnd)
    }

    pub(crate) fn note(&self, entry: &JournalLine) -> Result<(), CrashError> {
        self.journal.write(entry)
    }
}

const DONE: u16 = 200;
const DELAY_MAX_MICROS: u64 = 6000;

/// The answer of an operation is the name of its effect, so that a second one would show.
fn outcome(effect: String) -> Result<Outcome, CrashError> {
    Outcome::new(DONE, Vec::new(), Body::Kept(effect.into()))
        .map_err(CrashError::refused("keep an outcome"))
}

/// The name of the effect an outcome tells of.
pub(crate) fn effect(outcome: &Outcome) -> Option<String> {
    let Body::Kept(body) = outcome.body() else { return None };
    String::from_utf8(body.to_vec()).ok().filter(|name| !name.is_empty())
}

/// How long a request or an answer is under way: much of a victim's life is spent there, and so are
/// many of its deaths.
fn delay() -> Duration {
    Duration::from_micros(fastrand::u64(..DELAY_MAX_MICROS))
}
