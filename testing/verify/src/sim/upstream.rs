//! Whatever has the effect: a ledger behind a bad connection.
//!
//! It lives outside the processes: a call under way goes on when its caller dies.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{AnswerMeaning, AttemptAnswer, AttemptEnd, Body, Fence, Outcome, Recovery};
use tokio::{sync::oneshot, time::sleep};

use super::{
    dice::Dice,
    plan::Flaw,
    recorder::{RecordedRun, Recorder},
    store::ProcessLife,
};

#[derive(Debug, Clone)]
pub(super) struct SimUpstream {
    dice: Dice,
    recorder: Recorder,
    ledger: Arc<Mutex<BTreeMap<usize, KeyAccount>>>,
}

/// What the upstream knows about one key.
#[derive(Debug, Default)]
struct KeyAccount {
    /// The answer it gave when the effect happened.
    done: Option<AttemptAnswer>,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamCall {
    pub(super) key: usize,
    pub(super) request: u8,
    pub(super) fence: Fence,
}

impl UpstreamCall {
    fn ran(self) -> RecordedRun {
        RecordedRun { key: self.key, request: self.request, fence: self.fence }
    }
}

enum UpstreamFate {
    Refused,
    ServerError,
    ClientError,
    AnswerLost,
    Slow,
    AnsweredFor,
    Crash,
}

impl SimUpstream {
    pub(super) fn new(dice: Dice, recorder: Recorder) -> Self {
        Self { dice, recorder, ledger: Arc::default() }
    }

    /// Forgets everything, as after the retention of an upstream's own keys.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// Calls, and says how that ended for the caller.
    pub(super) async fn call(&self, call: UpstreamCall, life: &ProcessLife) -> AttemptEnd {
        let faults = &self.dice.plan().upstream;
        let fate = self.dice.fault([
            (faults.refused, UpstreamFate::Refused),
            (faults.server_error, UpstreamFate::ServerError),
            (faults.client_error, UpstreamFate::ClientError),
            (faults.answer_lost, UpstreamFate::AnswerLost),
            (faults.slow, UpstreamFate::Slow),
            (faults.answered_for, UpstreamFate::AnsweredFor),
            (faults.crash, UpstreamFate::Crash),
        ]);
        match fate {
            Some(UpstreamFate::Refused) => AttemptEnd::NothingSent,
            Some(UpstreamFate::ServerError) => self.server_error(),
            Some(UpstreamFate::ClientError) => self.refuse(call),
            Some(UpstreamFate::AnswerLost) => {
                self.perform(call).await;
                AttemptEnd::Unanswered
            }
            Some(UpstreamFate::Slow) => {
                drop(self.send_slowly(call));
                AttemptEnd::Interrupted
            }
            Some(UpstreamFate::AnsweredFor) => {
                drop(self.send_slowly(call));
                let status = [502, 504, 524, 600][self.dice.below(4)];
                let meaning = match self.dice.plan().flaw {
                    Some(Flaw::AnswersForItBelieved) => AnswerMeaning::NotDone,
                    Some(Flaw::EarlyNoBelieved) | None => AnswerMeaning::Inconclusive,
                };
                let outcome = Outcome::bare(status);
                AttemptEnd::Answered(AttemptAnswer { outcome, meaning })
            }
            Some(UpstreamFate::Crash) => {
                let answer = self.send(call);
                sleep(self.dice.up_to(faults.delay_max)).await;
                drop(answer);
                life.end().await
            }
            None => self.perform(call).await,
        }
    }

    /// An error in mid-work: found out about where that is possible, and counted as not done elsewhere.
    fn server_error(&self) -> AttemptEnd {
        let meaning = match self.dice.plan().recovery {
            Recovery::Resend | Recovery::Probe => AnswerMeaning::Inconclusive,
            Recovery::Hold => AnswerMeaning::TakenForNotDone,
        };
        AttemptEnd::Answered(AttemptAnswer { outcome: Outcome::bare(500), meaning })
    }

    /// Refuses a request for good, unless the key was used already.
    fn refuse(&self, call: UpstreamCall) -> AttemptEnd {
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        let answer = account.done.get_or_insert_with(|| {
            let refusal = Outcome::bare(400);
            self.recorder.declined(call.ran(), &refusal);
            AttemptAnswer::failed(refusal)
        });
        AttemptEnd::Answered(answer.clone())
    }

    async fn perform(&self, call: UpstreamCall) -> AttemptEnd {
        match self.send(call).await {
            Ok(Some(answer)) => AttemptEnd::Answered(answer),
            Ok(None) => AttemptEnd::NothingSent,
            Err(_) => AttemptEnd::Unanswered,
        }
    }

    /// Sends the call on its way; it arrives even if nobody waits for the answer.
    fn send(&self, call: UpstreamCall) -> oneshot::Receiver<Option<AttemptAnswer>> {
        let delay_max = self.dice.plan().upstream.delay_max;
        let (there, back) = (self.dice.up_to(delay_max), self.dice.up_to(delay_max));
        self.send_in(call, there, back)
    }

    /// Sends a call that is given up at once, and happens within the time for which it may be at work.
    fn send_slowly(&self, call: UpstreamCall) -> oneshot::Receiver<Option<AttemptAnswer>> {
        let there = self.dice.up_to(self.dice.plan().works_for());
        self.send_in(call, there, Duration::ZERO)
    }

    fn send_in(
        &self,
        call: UpstreamCall,
        there: Duration,
        back: Duration,
    ) -> oneshot::Receiver<Option<AttemptAnswer>> {
        let (answer, answered) = oneshot::channel();
        let upstream = self.clone();
        tokio::spawn(async move {
            sleep(there).await;
            let arrived = upstream.arrive(call);
            sleep(back).await;
            drop(answer.send(arrived));
        });
        answered
    }

    /// The call arrives; `None` if it is turned away because it was done already, which only an
    /// upstream that deduplicates would say.
    fn arrive(&self, call: UpstreamCall) -> Option<AttemptAnswer> {
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        match self.dice.plan().recovery {
            Recovery::Resend => {
                if let Some(answer) = &account.done {
                    return Some(answer.clone());
                }
            }
            Recovery::Probe | Recovery::Hold => {}
        }
        let answer = AttemptAnswer::completed(self.recorder.effect(call.ran(), receipt));
        account.done = Some(answer.clone());
        Some(answer)
    }

    /// Did it happen? A plain look: what is still at work is not seen, and the answer may come late.
    pub(super) async fn probe(&self, key: usize) -> Option<AttemptAnswer> {
        let delay_max = self.dice.plan().upstream.delay_max;
        sleep(self.dice.up_to(delay_max)).await;
        let done = self.lock().get(&key).and_then(|account| account.done.clone());
        sleep(self.dice.up_to(delay_max)).await;
        done
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, KeyAccount>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer that tells which effect it is about.
fn receipt(number: u64) -> Outcome {
    let body = Body::Kept(Bytes::from(number.to_be_bytes().to_vec()));
    Outcome::new(201, Vec::new(), body).unwrap_or_else(|_| Outcome::bare(201))
}
