//! What probes ask through.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::{
    ApiUnderTest, AwaitedKey, Defect, EffectBudget, ExamRequest, Examination, ExaminationMemory,
    Exchange, HttpAddress, LearnedConduct, OracleFault, ProbeLog, RawAnswer, Wire,
    profile::RefusalReason, wire::AddressedRequest,
};

/// How often an operation is asked for until it has success.
const FIRST_TRIALS_MAX: u32 = 3;
/// How long an answer is waited for at least: a busy machine is no broken API.
const PATIENCE_MIN: Duration = Duration::from_secs(10);
/// How long is rested between.
const FIRST_REST: Duration = Duration::from_millis(500);

/// Asks the API under test, and counts what came of it.
#[derive(Debug)]
pub struct Examiner {
    examination: Arc<Examination>,
    wire: Wire,
    budget: EffectBudget,
    learned: LearnedConduct,
    operations: AtomicU32,
    /// By which no two runs have a key in common, though they have a seed.
    run: u32,
    awaited: Mutex<Vec<AwaitedKey>>,
    began: Instant,
    cancelled: Arc<AtomicBool>,
}

/// A request that had success.
#[derive(Debug)]
pub(crate) struct FirstSuccess {
    /// What was asked.
    pub(crate) request: ExamRequest,
    /// How.
    pub(crate) exchange: Exchange,
    /// What was answered.
    pub(crate) answer: RawAnswer,
}

/// Why a probe cannot go on.
#[derive(Debug, Error)]
pub enum ProbeInterruption {
    /// Effects cannot be counted.
    #[error(transparent)]
    Oracle(#[from] OracleFault),
    /// More effects than were agreed to.
    #[error("the {allowed} effects that were allowed are spent: `--max-effects` allows more")]
    BudgetSpent {
        /// How many were.
        allowed: u32,
    },
    /// A hook failed.
    #[error("{0}")]
    Hook(String),
    /// Somebody wants it to end.
    #[error("it was interrupted")]
    Cancelled,
}

impl Examiner {
    pub(crate) fn new(
        examination: Arc<Examination>,
        learned: LearnedConduct,
        cancelled: Arc<AtomicBool>,
    ) -> Self {
        let budget = EffectBudget::new(examination.bounds.effects_max);
        let wire = examination.wire.clone();
        let operations = AtomicU32::new(examination.earlier.operations);
        let (run, awaited, began) = (fastrand::u32(..), Mutex::default(), Instant::now());
        Self { examination, wire, budget, learned, operations, run, awaited, began, cancelled }
    }

    /// What is examined.
    pub fn examination(&self) -> &Examination {
        &self.examination
    }

    /// The API under test.
    pub fn api(&self) -> &ApiUnderTest {
        &self.examination.api
    }

    /// Where it is, first of all.
    pub fn address(&self) -> &HttpAddress {
        &self.examination.api.addresses[0]
    }

    /// What is known of it.
    pub fn learned(&self) -> &LearnedConduct {
        &self.learned
    }

    pub(crate) fn learn(&mut self, learned: LearnedConduct) {
        self.learned = learned;
    }

    /// What sends bytes.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// How many operations were begun.
    pub fn effects_spent(&self) -> u32 {
        self.budget.spent()
    }

    /// What a later run must know.
    pub(crate) fn memory(&self) -> ExaminationMemory {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ExaminationMemory { operations: self.operations.load(Ordering::Relaxed), awaited }
    }

    /// Keeps a key for a later run.
    pub(crate) fn remember(&self, key: AwaitedKey) {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    /// The time of day.
    pub(crate) fn now(&self) -> SystemTime {
        self.examination.now + self.began.elapsed()
    }

    /// Whether somebody wants it to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// A number by which what random choices a probe makes can be made again.
    pub fn seed(&self) -> u64 {
        self.examination.seed
    }

    /// Random choices for this purpose: the same for the same seed, whatever else is or was examined.
    pub(crate) fn chance(&self, purpose: &str) -> fastrand::Rng {
        // FNV-1a, which is the same on every machine and in every version.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = self.seed().to_le_bytes();
        let bytes = seed.into_iter().chain(purpose.bytes());
        fastrand::Rng::with_seed(bytes.fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// An operation that nobody has asked for, with a key and a marker of its own.
    pub fn fresh(&self) -> Result<ExamRequest, ProbeInterruption> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ProbeInterruption::Cancelled);
        }
        self.budget.spend(1)?;
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let marker = self.marker(number);
        let key = self.key(&marker, number);
        let api = self.api();
        Ok(ExamRequest {
            method: api.method.clone(),
            path: api.path.replace("{marker}", &marker),
            headers: api.plain_headers(),
            credentials: api.credentials.main.clone(),
            key_header: api.key.name.clone(),
            keys: vec![self.learned.syntax.write(&key).into_bytes()],
            body: api.body.marked(&marker).into(),
            marker,
        })
    }

    /// The same content under another key that nobody has used: one more operation.
    pub(crate) fn under_another_key(
        &self,
        request: &ExamRequest,
    ) -> Result<ExamRequest, ProbeInterruption> {
        Ok(request.with_keys(self.fresh()?.keys))
    }

    /// A key that nobody has used, as it is before it is written.
    pub(crate) fn fresh_key(&self) -> String {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        self.key(&self.marker(number), number)
    }

    /// As long as any other: who counts by looking for one as a part of a text finds none that is longer.
    fn marker(&self, number: u32) -> String {
        format!("hpx-{:08x}-{:08x}-{number:06}", self.seed() & 0xffff_ffff, self.run)
    }

    /// Asks for a fresh operation, changed so, until it has success; nothing if it has none.
    ///
    /// An API that was slow, or wanted less for a moment, is asked for the same operation again.
    pub(crate) async fn succeed(
        &self,
        log: &ProbeLog,
        label: &str,
        change: impl Fn(ExamRequest) -> ExamRequest,
    ) -> Result<Option<FirstSuccess>, ProbeInterruption> {
        let request = change(self.fresh()?);
        for _ in 0..FIRST_TRIALS_MAX {
            let exchange = self.ask(log, label, &request).await;
            match exchange.answer() {
                Some(answer) if answer.is_success() => {
                    let answer = answer.clone();
                    return Ok(Some(FirstSuccess { request, exchange, answer }));
                }
                Some(answer) if answer.is_refusal() && !self.comes_back(answer) => break,
                Some(_) | None => sleep(FIRST_REST).await,
            }
        }
        Ok(None)
    }

    /// A key that nobody has used: a UUID where keys must be such.
    fn key(&self, marker: &str, number: u32) -> String {
        if !self.api().key.uuids {
            return format!("key-{marker}");
        }
        let mut random = fastrand::Rng::with_seed(
            self.seed() ^ (u64::from(number) << 32) ^ u64::from(self.run).rotate_left(13),
        );
        let (high, low) = (random.u64(..), random.u64(..));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// This request, for the address of this number; the first one if there is none.
    pub(crate) fn addressed<'a>(
        &'a self,
        index: usize,
        request: &'a ExamRequest,
    ) -> AddressedRequest<'a> {
        let found = self.api().addresses.get(index).map(|address| (address, index));
        let (address, index) = found.unwrap_or_else(|| (self.address(), 0));
        AddressedRequest { address, index, request }
    }

    /// Whether this answer says that the first request is still at work, or that nobody can say now.
    pub(crate) fn comes_back(&self, answer: &RawAnswer) -> bool {
        use RefusalReason::{BadKey, InFlight, Mismatch, MissingKey};
        let declared = self.examination.declared.refusals;
        let says = |reason| declared.is_some_and(|declared| declared.says(reason, answer));
        says(InFlight)
            || (answer.asks_to_come_back() && ![Mismatch, MissingKey, BadKey].into_iter().any(says))
    }

    /// What is wrong if something is refused in other words than those of the vendor that is named.
    pub(crate) fn judge_words(
        &self,
        reason: RefusalReason,
        exchange: &Exchange,
        asked: &str,
    ) -> Option<Defect> {
        self.examination.declared.refusals?.judge(reason, exchange, asked)
    }

    /// Waits until what was begun before is most likely over, where nobody waits for its answer.
    pub(crate) async fn rest(&self) {
        let latency = self.learned.latency;
        sleep((latency * 2).clamp(Duration::from_millis(50), self.examination.bounds.answer)).await;
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, log: &ProbeLog, label: &str, request: &ExamRequest) -> Exchange {
        let patience = self.patience();
        self.wire.ask(log, label, self.address(), request, patience).await
    }

    /// Asks until the answer is not that somebody should come back, at most for as long as keys may be stuck.
    ///
    /// The last exchange in any case: who is still told to come back is stuck.
    pub async fn ask_until_settled(
        &self,
        log: &ProbeLog,
        label: &str,
        request: &ExamRequest,
    ) -> Exchange {
        let until = Instant::now() + self.examination.bounds.recovery;
        let mut wait = Duration::from_millis(20);
        loop {
            let exchange = self.ask(log, label, request).await;
            let is_settled = exchange.answer().is_some_and(|answer| !self.comes_back(answer));
            if is_settled
                || Instant::now() + wait >= until
                || self.cancelled.load(Ordering::Relaxed)
            {
                return exchange;
            }
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_millis(500));
        }
    }

    /// How often the effect of this marker happened, once that has stopped changing; nothing where nobody counts.
    pub async fn effects(
        &self,
        log: &ProbeLog,
        marker: &str,
    ) -> Result<Option<u64>, ProbeInterruption> {
        let Some(oracle) = &self.examination.oracle else { return Ok(None) };
        // Somebody who counts late is later at times.
        let rest = (self.learned.count_lag * 2).max(Duration::from_millis(10));
        let mut before = oracle.count(marker).await?;
        // What was begun may still be at work.
        for _ in 0..3 {
            sleep(rest).await;
            let count = oracle.count(marker).await?;
            let is_stable = count == before;
            before = count;
            if is_stable {
                break;
            }
        }
        log.note(format!("{before} effects of {marker}"));
        Ok(Some(before))
    }

    /// How often it has happened by now, without waiting.
    pub async fn effects_now(&self, marker: &str) -> Result<Option<u64>, ProbeInterruption> {
        match &self.examination.oracle {
            Some(oracle) => Ok(Some(oracle.count(marker).await?)),
            None => Ok(None),
        }
    }

    /// How long an answer is waited for.
    pub fn patience(&self) -> Duration {
        (self.learned.latency * 20).max(PATIENCE_MIN).min(self.examination.bounds.answer)
    }
}
