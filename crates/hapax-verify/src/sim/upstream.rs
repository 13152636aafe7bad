//! Whatever has the effect: a ledger behind a bad connection.
//!
//! It lives outside the processes: a call under way goes on when its caller dies.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{Body, Ended, Fence, Outcome, Recovery};
use tokio::{sync::oneshot, time::sleep};

use super::{
    dice::Dice,
    plan::Flaw,
    recorder::{Ran, Recorder},
    store::Life,
};

#[derive(Debug, Clone)]
pub(super) struct Upstream {
    dice: Dice,
    recorder: Recorder,
    ledger: Arc<Mutex<BTreeMap<usize, Account>>>,
}

/// What the upstream knows about one key.
#[derive(Debug, Default)]
struct Account {
    /// The answer it gave when the effect happened.
    done: Option<Outcome>,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) key: usize,
    pub(super) request: u8,
    pub(super) fence: Fence,
}

impl Call {
    fn ran(self) -> Ran {
        Ran { key: self.key, request: self.request, fence: self.fence }
    }
}

enum Fate {
    Refused,
    ServerError,
    ClientError,
    AnswerLost,
    Slow,
    AnsweredFor,
    Crash,
}

impl Upstream {
    pub(super) fn new(dice: Dice, recorder: Recorder) -> Self {
        Self { dice, recorder, ledger: Arc::default() }
    }

    /// Forgets everything, as after the retention of an upstream's own keys.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// Calls, and says how that ended for the caller.
    pub(super) async fn call(&self, call: Call, life: &Life) -> Ended {
        let faults = &self.dice.plan().upstream;
        let fate = self.dice.fault([
            (faults.refused, Fate::Refused),
            (faults.server_error, Fate::ServerError),
            (faults.client_error, Fate::ClientError),
            (faults.answer_lost, Fate::AnswerLost),
            (faults.slow, Fate::Slow),
            (faults.answered_for, Fate::AnsweredFor),
            (faults.crash, Fate::Crash),
        ]);
        match fate {
            Some(Fate::Refused) => Ended::NothingSent { told: Outcome::bare(502) },
            Some(Fate::ServerError) => Ended::Answered(Outcome::bare(500)),
            Some(Fate::ClientError) => self.refuse(call),
            Some(Fate::AnswerLost) => {
                self.perform(call).await;
                Ended::Unanswered { told: Outcome::bare(504) }
            }
            Some(Fate::Slow) => {
                drop(self.send_slowly(call));
                Ended::Interrupted { told: Outcome::bare(504) }
            }
            Some(Fate::AnsweredFor) => {
                drop(self.send_slowly(call));
                let status = [502, 504, 524, 600][self.dice.below(4)];
                match self.dice.plan().flaw {
                    Some(Flaw::AnswersForItBelieved) => {
                        Ended::NotDone { told: Outcome::bare(status) }
                    }
                    Some(Flaw::EarlyNoBelieved) | None => Ended::Answered(Outcome::bare(status)),
                }
            }
            Some(Fate::Crash) => {
                let answer = self.send(call);
                sleep(self.dice.up_to(faults.delay_max)).await;
                drop(answer);
                life.end().await
            }
            None => self.perform(call).await,
        }
    }

    /// Refuses a request for good, unless the key was used already.
    fn refuse(&self, call: Call) -> Ended {
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        let outcome = account.done.get_or_insert_with(|| {
            let refusal = Outcome::bare(400);
            self.recorder.declined(call.ran(), &refusal);
            refusal
        });
        Ended::Answered(outcome.clone())
    }

    async fn perform(&self, call: Call) -> Ended {
        match self.send(call).await {
            Ok(Some(outcome)) => Ended::Answered(outcome),
            Ok(None) => Ended::NothingSent { told: Outcome::bare(409) },
            Err(_) => Ended::Unanswered { told: Outcome::bare(504) },
        }
    }

    /// Sends the call on its way; it arrives even if nobody waits for the answer.
    fn send(&self, call: Call) -> oneshot::Receiver<Option<Outcome>> {
        let delay_max = self.dice.plan().upstream.delay_max;
        let (there, back) = (self.dice.up_to(delay_max), self.dice.up_to(delay_max));
        self.send_in(call, there, back)
    }

    /// Sends a call that is given up at once, and happens within the time for which it may be at work.
    fn send_slowly(&self, call: Call) -> oneshot::Receiver<Option<Outcome>> {
        let there = self.dice.up_to(self.dice.plan().works_for());
        self.send_in(call, there, Duration::ZERO)
    }

    fn send_in(
        &self,
        call: Call,
        there: Duration,
        back: Duration,
    ) -> oneshot::Receiver<Option<Outcome>> {
        let (answer, answered) = oneshot::channel();
        let upstream = self.clone();
        tokio::spawn(async move {
            sleep(there).await;
            let outcome = upstream.arrive(call);
            sleep(back).await;
            drop(answer.send(outcome));
        });
        answered
    }

    /// The call arrives; `None` if it is turned away because it was done already, which only an
    /// upstream that deduplicates would say.
    fn arrive(&self, call: Call) -> Option<Outcome> {
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        match self.dice.plan().recovery {
            Recovery::Resend => {
                if let Some(outcome) = &account.done {
                    return Some(outcome.clone());
                }
            }
            Recovery::Probe | Recovery::Hold => {}
        }
        let outcome = self.recorder.effect(call.ran(), receipt);
        account.done = Some(outcome.clone());
        Some(outcome)
    }

    /// Did it happen? A plain look: what is still at work is not seen, and the answer may come late.
    pub(super) async fn probe(&self, key: usize) -> Option<Outcome> {
        let delay_max = self.dice.plan().upstream.delay_max;
        sleep(self.dice.up_to(delay_max)).await;
        let done = self.lock().get(&key).and_then(|account| account.done.clone());
        sleep(self.dice.up_to(delay_max)).await;
        done
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Account>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer that tells which effect it is about.
fn receipt(number: u64) -> Outcome {
    let body = Body::Kept(Bytes::from(number.to_be_bytes().to_vec()));
    Outcome::new(201, Vec::new(), body).unwrap_or_else(|_| Outcome::bare(201))
}
