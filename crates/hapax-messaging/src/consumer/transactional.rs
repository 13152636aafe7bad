//! One message in one transaction: enter, act, leave; again, where others were in the way.

use std::{
    any::Any, error::Error, marker::PhantomData, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use futures_util::FutureExt;
use hapax_core::{
    Faults, OneLine, Scope, StoreError, TransactionError,
    inbox::{
        First, Guard, Inbox, KeptMessage, Letter, LetterReason, Message, MessageAnswer,
        MessageArrival, MessageEnd, MessageEntered, Partition, Proof, RegisteredConsumer, Taken,
        Turn, Waiting, turn,
    },
};
use hapax_engine::transactional::lend;
use tokio::time::{error::Elapsed, sleep, timeout};

use super::{
    clock::InboxClock,
    dead_letters::DeadLetters,
    handler::{HandlerError, Tx},
    options::{GivenUp, Options, ProgressStorage},
    places::place,
    worker::{Acceptance, DeliveryEnd, Worker},
};

/// Times one delivery is tried because another transaction was in the way, before it is left to come
/// again.
const CONFLICTS_MAX: u32 = 6;
/// The longest pause between two such tries; chance makes it shorter.
const CONFLICT_PAUSE: Duration = Duration::from_millis(50);
/// Most held messages looked at in one patrol, and most of one key that follow each other at once.
const WAITING_MAX: usize = 100;
/// Most records forgotten by one statement.
const FORGOTTEN_MAX: usize = 1000;

/// Acts on messages in transactions of one database.
pub(super) struct TransactionalWorker<I, H, F> {
    pub(super) inbox: I,
    pub(super) handler: H,
    pub(super) consumer: RegisteredConsumer,
    pub(super) options: Options,
    pub(super) dead: DeadLetters,
    pub(super) faults: Faults,
    pub(super) clock: InboxClock,
    pub(super) future: PhantomData<fn() -> F>,
}

/// What a handler answered, unless it panicked or took too long.
pub(super) type HandlerAnswer =
    Result<Result<Result<(), HandlerError>, Box<dyn Any + Send>>, Elapsed>;

/// What a try came to.
enum TryOutcome {
    Ended(DeliveryEnd),
    /// Another transaction was in the way.
    InTheWay,
    /// The message is final, and so many of its key are held.
    Done {
        held: u32,
    },
}

impl<I, H, F> Worker for TransactionalWorker<I, H, F>
where
    I: Inbox,
    H: Fn(Tx<I::Transaction>, Arc<Message>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    async fn open(&mut self) -> Result<(), StoreError> {
        let RegisteredConsumer { name, retention, .. } = &self.consumer;
        self.consumer = self.inbox.enlist(name, *retention).await?;
        Ok(())
    }

    async fn act(&self, message: Arc<Message>, proof: Proof) -> DeliveryEnd {
        if self.options.guard.is_some() && (message.key.is_none() || message.version.is_none()) {
            return self.put_aside(message, LetterReason::no_version()).await;
        }
        for _ in 0..CONFLICTS_MAX {
            match self.attempt(&message, proof).await {
                TryOutcome::Ended(ended @ (DeliveryEnd::Again(_) | DeliveryEnd::Fenced)) => {
                    return ended;
                }
                TryOutcome::Done { held: 0 } => return DeliveryEnd::Final,
                // What failed for good lets those behind it go on, too.
                TryOutcome::Done { .. } | TryOutcome::Ended(DeliveryEnd::Final) => {
                    self.follow(message.key.clone(), self.options.gap.patience).await;
                    return DeliveryEnd::Final;
                }
                TryOutcome::InTheWay => sleep(CONFLICT_PAUSE.mul_f64(fastrand::f64())).await,
            }
        }
        DeliveryEnd::Again(self.options.busy_pause)
    }

    async fn act_together(&self, messages: &[Acceptance]) -> Option<DeliveryEnd> {
        self.try_together(messages).await
    }

    async fn put_aside(&self, message: Arc<Message>, reason: LetterReason) -> DeliveryEnd {
        let letter = self.letter(&message, reason);
        tracing::warn!(id = message.id.as_str(), reason = %letter.reason, "a dead letter");
        let name = self.consumer.name.as_str();
        let kept = async {
            self.pass(place::BEFORE_LETTER)?;
            if self.dead.leave() {
                self.dead
                    .send(name, &message, &letter.reason)
                    .await
                    .map_err(StoreError::unavailable)?;
            } else {
                self.inbox.bury(&self.consumer, &letter).await?;
            }
            self.pass(place::AFTER_LETTER)
        };
        match kept.await {
            Ok(()) => DeliveryEnd::Final,
            Err(error) => self.outage(&error),
        }
    }

    async fn take(&self, partition: &Partition) -> Result<Taken, StoreError> {
        self.inbox.take(&self.consumer, partition).await
    }

    async fn patrol(&self) {
        if let Err(error) = self.clock.look(&self.inbox).await {
            tracing::debug!(%error, "the database's clock could not be looked at");
        }
        if let Some(Guard::EveryOne { .. }) = self.options.guard {
            self.follow(None, self.options.gap.patience).await;
        }
        if self.options.progress == ProgressStorage::Records
            && let Err(error) = self.inbox.forget(FORGOTTEN_MAX).await
        {
            tracing::warn!(%error, "what is past its retention was not forgotten");
        }
    }
}

impl<I, H, F> TransactionalWorker<I, H, F>
where
    I: Inbox,
    H: Fn(Tx<I::Transaction>, Arc<Message>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    async fn attempt(&self, message: &Arc<Message>, proof: Proof) -> TryOutcome {
        if let Err(error) = self.pass(place::BEFORE_ENTER) {
            return TryOutcome::Ended(self.outage(&error));
        }
        let First { transaction, last, held } = match self.enter(message, proof).await {
            Ok(first) => first,
            Err(tried) => return tried,
        };
        let turn = match (self.options.guard, message.version) {
            (Some(guard), Some(version)) => turn(guard, last, version, held),
            (_, _) => Turn::Now,
        };
        match (turn, proof) {
            (Turn::Now, _) => self.work(message, proof, transaction, held).await,
            (Turn::Over, _) => self.leave(transaction, &MessageEnd::Passed, 0).await,
            (Turn::NotYet | Turn::Full, Proof::Held) => {
                self.give_up(message, transaction, held).await
            }
            (Turn::NotYet, _) => {
                let kept = KeptMessage::clear(self.consumer.clone(), Arc::clone(message));
                self.leave(transaction, &MessageEnd::Held(kept), 0).await
            }
            (Turn::Full, _) => {
                self.inbox.take_back(transaction).await;
                // Nobody has patience with this gap any more.
                self.follow(message.key.clone(), Duration::ZERO).await;
                TryOutcome::InTheWay
            }
        }
    }

    /// Does with a message behind a gap what is done when the gap does not close.
    async fn give_up(
        &self,
        message: &Arc<Message>,
        transaction: I::Transaction,
        held: u32,
    ) -> TryOutcome {
        match self.options.gap.then {
            GivenUp::ActOn => self.work(message, Proof::Held, transaction, held).await,
            GivenUp::DeadLetter => {
                self.inbox.take_back(transaction).await;
                match self.bury(message, Proof::Held, LetterReason::gap()).await {
                    DeliveryEnd::Final => TryOutcome::Done { held },
                    ended @ (DeliveryEnd::Again(_) | DeliveryEnd::Fenced) => {
                        TryOutcome::Ended(ended)
                    }
                }
            }
        }
    }

    async fn enter(
        &self,
        message: &Arc<Message>,
        proof: Proof,
    ) -> Result<First<I::Transaction>, TryOutcome> {
        let arrival = MessageArrival {
            consumer: self.consumer.clone(),
            message: Arc::clone(message),
            proof,
            in_turn: self.options.guard.is_some(),
        };
        match self.inbox.enter(&arrival).await {
            Ok(MessageEntered::First(first)) => Ok(first),
            Ok(MessageEntered::Answer(answer)) => Err(TryOutcome::Ended(match answer {
                MessageAnswer::Duplicate | MessageAnswer::Failed(_) => DeliveryEnd::Final,
                MessageAnswer::Conflict => {
                    self.put_aside(Arc::clone(message), LetterReason::id_conflict()).await
                }
                MessageAnswer::Busy => DeliveryEnd::Again(self.options.busy_pause),
                MessageAnswer::Fenced => DeliveryEnd::Fenced,
            })),
            Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => {
                Err(TryOutcome::InTheWay)
            }
            Err(TransactionError::Store(error)) => Err(TryOutcome::Ended(self.outage(&error))),
        }
    }

    /// Runs the handler, and does with the transaction what its answer means.
    async fn work(
        &self,
        message: &Arc<Message>,
        proof: Proof,
        transaction: I::Transaction,
        held: u32,
    ) -> TryOutcome {
        if let Err(error) = self.pass(place::AFTER_ENTER) {
            self.inbox.take_back(transaction).await;
            return TryOutcome::Ended(self.outage(&error));
        }
        let (transaction, worked) = self.handle(message, transaction).await;
        let Some(transaction) = transaction else {
            return self.missed(message, proof, "the handler kept its transaction").await;
        };
        if let Err(error) = self.pass(place::AFTER_HANDLER) {
            self.inbox.take_back(transaction).await;
            return TryOutcome::Ended(self.outage(&error));
        }
        let why = match worked {
            Ok(Ok(Ok(()))) => return self.leave(transaction, &MessageEnd::Done, held).await,
            Ok(Ok(Err(HandlerError::Failed(reason)))) => {
                self.inbox.take_back(transaction).await;
                let ended = self.conclude(message, proof, MessageEnd::Failed(reason)).await;
                return TryOutcome::Ended(ended);
            }
            Ok(Ok(Err(HandlerError::Retry(error)))) => {
                if self.is_in_the_way(&*error) {
                    self.inbox.take_back(transaction).await;
                    return TryOutcome::InTheWay;
                }
                OneLine::of(&*error).to_string()
            }
            Ok(Err(_panic)) => "the handler panicked".to_owned(),
            Err(_elapsed) => format!("the handler took longer than {:?}", self.options.timeout),
        };
        self.inbox.take_back(transaction).await;
        self.missed(message, proof, &why).await
    }

    /// Lends the transaction to the handler, and takes it back.
    pub(super) async fn handle(
        &self,
        message: &Arc<Message>,
        transaction: I::Transaction,
    ) -> (Option<I::Transaction>, HandlerAnswer) {
        let (tx, lender) = lend(transaction, ());
        let message = Arc::clone(message);
        // Calling the handler is inside, too: it may panic before its future exists.
        let worked = AssertUnwindSafe(async { (self.handler)(tx, message).await });
        let worked = timeout(self.options.timeout, worked.catch_unwind()).await;
        (lender.take(), worked)
    }

    async fn leave(&self, transaction: I::Transaction, end: &MessageEnd, held: u32) -> TryOutcome {
        match self.inbox.leave(transaction, end).await {
            Ok(()) => match self.pass(place::AFTER_LEAVE) {
                Ok(()) => TryOutcome::Done { held },
                Err(error) => TryOutcome::Ended(self.outage(&error)),
            },
            Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => TryOutcome::InTheWay,
            // Not confirmed: when the message comes again, what is stored answers it.
            Err(TransactionError::Store(error)) => TryOutcome::Ended(self.outage(&error)),
        }
    }

    /// Counts a failed attempt: the message comes again, or is a dead letter.
    async fn missed(&self, message: &Arc<Message>, proof: Proof, why: &str) -> TryOutcome {
        let id = &message.id;
        let counted = async {
            self.pass(place::BEFORE_MISSED)?;
            let attempts = self.inbox.missed(&self.consumer, id).await?;
            self.pass(place::AFTER_MISSED)?;
            Ok::<_, StoreError>(attempts)
        };
        let attempts = match counted.await {
            Ok(attempts) => attempts,
            Err(error) => return TryOutcome::Ended(self.outage(&error)),
        };
        tracing::warn!(id = id.as_str(), attempts, why, "a message was not acted on");
        let pause = self.options.attempts.pause(attempts, Duration::ZERO, fastrand::u64(..));
        TryOutcome::Ended(match pause {
            Some(pause) => DeliveryEnd::Again(pause),
            None => self.bury(message, proof, LetterReason::poison(attempts, why)).await,
        })
    }

    fn letter(&self, message: &Arc<Message>, reason: LetterReason) -> Letter {
        Letter { kept: KeptMessage::clear(self.consumer.clone(), Arc::clone(message)), reason }
    }

    /// Makes a message a dead letter, and final.
    async fn bury(
        &self,
        message: &Arc<Message>,
        proof: Proof,
        reason: LetterReason,
    ) -> DeliveryEnd {
        if self.dead.leave() {
            let ended = self.put_aside(Arc::clone(message), reason.clone()).await;
            if ended != DeliveryEnd::Final {
                return ended;
            }
            return self.conclude(message, proof, MessageEnd::Failed(reason.to_string())).await;
        }
        tracing::warn!(id = message.id.as_str(), %reason, "a dead letter");
        if let Err(error) = self.pass(place::BEFORE_LETTER) {
            return self.outage(&error);
        }
        let letter = self.letter(message, reason);
        let ended = self.conclude(message, proof, MessageEnd::Dead(letter)).await;
        self.pass(place::AFTER_LETTER).map_or_else(|error| self.outage(&error), |()| ended)
    }

    /// Stores an end without an effect, in a transaction of its own: what the handler wrote is gone.
    async fn conclude(&self, message: &Arc<Message>, proof: Proof, end: MessageEnd) -> DeliveryEnd {
        for _ in 0..CONFLICTS_MAX {
            let First { transaction, held, .. } = match self.enter(message, proof).await {
                Ok(first) => first,
                Err(TryOutcome::Ended(ended)) => return ended,
                Err(TryOutcome::InTheWay | TryOutcome::Done { .. }) => continue,
            };
            match self.leave(transaction, &end, held).await {
                TryOutcome::Ended(ended) => return ended,
                TryOutcome::Done { .. } => return DeliveryEnd::Final,
                TryOutcome::InTheWay => sleep(CONFLICT_PAUSE.mul_f64(fastrand::f64())).await,
            }
        }
        DeliveryEnd::Again(self.options.busy_pause)
    }

    /// Acts on held messages, of this key or all, as long as each one is followed by another.
    async fn follow(&self, key: Option<String>, patience: Duration) {
        let Some(Guard::EveryOne { first, .. }) = self.options.guard else { return };
        let mut waiting = Waiting { key, first, patience, limit: WAITING_MAX };
        let mut conflicts = 0;
        for _ in 0..WAITING_MAX {
            let found = match self.inbox.waiting(&self.consumer, &waiting).await {
                Ok(found) if found.iter().any(|message| message.is_sealed()) => {
                    let name = self.consumer.name.as_str();
                    tracing::error!(
                        consumer = name,
                        "held messages are encrypted, and this inbox was not given the keys"
                    );
                    return;
                }
                Ok(found) => found,
                Err(error) => return tracing::warn!(%error, "held messages were not looked for"),
            };
            // Behind a gap that was given up, the rest has its turn, or its patience again.
            waiting.patience = self.options.gap.patience;
            let mut went_on = false;
            for message in found {
                let tried = match message.unreadable_because() {
                    None => Box::pin(self.attempt(&message, Proof::Held)).await,
                    Some(why) => self.bury_unread(&message, why).await,
                };
                went_on |= match tried {
                    TryOutcome::Done { .. } | TryOutcome::Ended(DeliveryEnd::Final) => true,
                    TryOutcome::Ended(DeliveryEnd::Again(_) | DeliveryEnd::Fenced) => false,
                    // A delivery of the same key may just have been held, and will not look again.
                    TryOutcome::InTheWay => {
                        conflicts += 1;
                        sleep(CONFLICT_PAUSE.mul_f64(fastrand::f64())).await;
                        conflicts < CONFLICTS_MAX
                    }
                };
            }
            if !went_on {
                return;
            }
        }
    }

    /// Makes a held message a dead letter that nobody can ever decrypt, so that those behind it go on. It
    /// stays in the database: no sink is given ciphertext.
    async fn bury_unread(&self, message: &Arc<Message>, why: &str) -> TryOutcome {
        tracing::error!(id = message.id.as_str(), why, "a held message cannot be decrypted");
        let letter = self.letter(message, LetterReason::unreadable(why));
        TryOutcome::Ended(self.conclude(message, Proof::Held, MessageEnd::Dead(letter)).await)
    }

    fn is_in_the_way(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if self.inbox.is_in_the_way(error) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    pub(super) fn outage(&self, error: &StoreError) -> DeliveryEnd {
        let error: &dyn Error = error;
        tracing::warn!(error, "a message is left to come again");
        DeliveryEnd::Again(self.options.outage_pause)
    }

    pub(super) fn pass(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unavailable)
    }
}

/// A consumer that is not yet known to its database.
pub(super) fn unknown(name: Scope, retention: Duration) -> RegisteredConsumer {
    RegisteredConsumer { number: 0, name, retention }
}
