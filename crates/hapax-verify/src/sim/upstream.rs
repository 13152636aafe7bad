//! Whatever has the effect: a ledger behind a bad connection.
//!
//! It lives outside the processes: a call under way goes on when its caller dies.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hapax_core::{Body, Ended, Fence, Outcome, Recovery};
use tokio::{sync::oneshot, time::sleep};

use super::{
    dice::Dice,
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
    /// The highest fence it was shown.
    fence: Option<Fence>,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) key: usize,
    pub(super) request: u8,
    pub(super) fence: Fence,
    /// The owner before vanished.
    pub(super) recovering: bool,
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
        if call.recovering
            && self.dice.plan().recovery == Recovery::Probe
            && let Some(outcome) = self.probe(call).await
        {
            return Ended::Answered(outcome);
        }
        let faults = &self.dice.plan().upstream;
        let fate = self.dice.fault([
            (faults.refused, Fate::Refused),
            (faults.server_error, Fate::ServerError),
            (faults.client_error, Fate::ClientError),
            (faults.answer_lost, Fate::AnswerLost),
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
        let (answer, answered) = oneshot::channel();
        let upstream = self.clone();
        let delay_max = self.dice.plan().upstream.delay_max;
        let (there, back) = (self.dice.up_to(delay_max), self.dice.up_to(delay_max));
        tokio::spawn(async move {
            sleep(there).await;
            let outcome = upstream.arrive(call);
            sleep(back).await;
            drop(answer.send(outcome));
        });
        answered
    }

    /// The call arrives; `None` if a later attempt was here before.
    fn arrive(&self, call: Call) -> Option<Outcome> {
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        match self.dice.plan().recovery {
            Recovery::Resend => {
                if let Some(outcome) = &account.done {
                    return Some(outcome.clone());
                }
            }
            Recovery::Probe => {
                if account.fence.is_some_and(|seen| call.fence < seen) {
                    return None;
                }
                account.fence = Some(call.fence);
            }
            Recovery::Hold => {}
        }
        let outcome = self.recorder.effect(call.ran(), receipt);
        account.done = Some(outcome.clone());
        Some(outcome)
    }

    /// Did it happen? From then on, earlier attempts are turned away.
    async fn probe(&self, call: Call) -> Option<Outcome> {
        sleep(self.dice.up_to(self.dice.plan().upstream.delay_max)).await;
        let mut ledger = self.lock();
        let account = ledger.entry(call.key).or_default();
        account.fence = account.fence.max(Some(call.fence));
        account.done.clone()
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
