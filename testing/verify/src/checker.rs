//! Judges a history: one effect per key, one answer per key, nothing invented, nothing stuck.
//!
//! Written without a look at the engine, so that the two cannot share a mistake. It takes time
//! linear in the number of events.

use std::collections::HashMap;

use crate::history::{
    Call, Digest, FinalState, HistoryEvent, Key, LedgerRun, ObservedAnswer, Request,
};

/// How often a key may have its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedEffects {
    /// Once in each retention life.
    Once,
    /// Whatever has the effect recognises repetitions by the key: more runs are one effect as long
    /// as they are the same request and answer the same.
    Deduplicated,
}

/// What a history says, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryReport {
    /// Operations seen.
    pub keys: usize,
    /// Calls seen.
    pub calls: usize,
    /// Effects seen.
    pub effects: usize,
    /// Answers that were replays.
    pub replays: usize,
    /// Everything that must not be, in the order in which it was noticed.
    pub violations: Vec<HistoryViolation>,
}

/// Something that must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryViolation {
    /// A key had its effect twice.
    #[error("{key} had a second effect: first under fence {first}, again under fence {second}")]
    SecondEffect {
        /// Which operation.
        key: Key,
        /// The fence of the first effect.
        first: i64,
        /// The fence of the second.
        second: i64,
    },
    /// Two answers, or an answer and what is stored, do not agree.
    #[error("{key} answered {first} and later {second}")]
    DifferentOutcomes {
        /// Which operation.
        key: Key,
        /// What was said first.
        first: Digest,
        /// What was said or stored later.
        second: Digest,
    },
    /// An outcome was answered or stored that no run of the key produced.
    #[error("{key} answered {outcome}, which no run of it produced")]
    Invented {
        /// Which operation.
        key: Key,
        /// What was answered.
        outcome: Digest,
    },
    /// A success was acknowledged and nothing ever ran.
    #[error("{key} answered {outcome}, and nothing ever ran")]
    NothingRan {
        /// Which operation.
        key: Key,
        /// What was answered.
        outcome: Digest,
    },
    /// A request was answered with what another request produced.
    #[error("{key} answered {request} of {call} with {outcome}, which is of another request")]
    ForeignOutcome {
        /// Which operation.
        key: Key,
        /// Which call.
        call: Call,
        /// The request of that call.
        request: Request,
        /// What it was answered with.
        outcome: Digest,
    },
    /// A request was refused as different though no other request ever came.
    #[error("{key} refused {call} as different, and there was never another request")]
    FalseMismatch {
        /// Which operation.
        key: Key,
        /// Which call.
        call: Call,
    },
    /// When all was quiet, the operation had not come to an end.
    #[error("{key} is stuck: when all was quiet it stood at {end:?}")]
    Stuck {
        /// Which operation.
        key: Key,
        /// Where it stood; `None` if the history does not say.
        end: Option<FinalState>,
    },
    /// The effect happened, and the key was free for another one.
    #[error("{key} had its effect and was free again: when all was quiet it stood at {end:?}")]
    FreedAfterEffect {
        /// Which operation.
        key: Key,
        /// Where it stood.
        end: FinalState,
    },
    /// A client never heard anything, not even that the outcome is unknown.
    #[error("{call} of {key} was never answered")]
    NeverAnswered {
        /// Which operation.
        key: Key,
        /// Which call.
        call: Call,
    },
    /// The history contradicts itself: a call was begun or answered twice, or never begun.
    #[error("the history is malformed at {call}")]
    Malformed {
        /// Which call.
        call: Call,
    },
}

/// Judges a history in which everything that was seen is in the order it was seen in.
pub fn check(history: &[HistoryEvent], effects: AllowedEffects) -> HistoryReport {
    let mut checker = Checker { rule: effects, ..Checker::default() };
    // Ledgers are often read after the answers, so what ran is known before answers are judged.
    for event in history {
        checker.learn(event);
    }
    checker.begin_anew();
    for event in history {
        checker.judge(event);
    }
    checker.finish()
}

struct Checker {
    rule: AllowedEffects,
    report: HistoryReport,
    keys: HashMap<Key, SeenOperation>,
    calls: HashMap<Call, Pending>,
    order: Vec<Key>,
    calls_in_order: Vec<Call>,
}

/// What was seen of one operation.
#[derive(Default)]
struct SeenOperation {
    lives: Vec<OperationLife>,
    /// The life the history is in, while it is walked through.
    now: usize,
    first_request: Option<Request>,
    several_requests: bool,
    end: Option<FinalState>,
}

/// What was seen of one operation between two expiries.
#[derive(Default)]
struct OperationLife {
    effect: Option<LedgerRun>,
    produced: HashMap<Digest, Request>,
    answered: Option<Digest>,
}

/// A call that was begun.
struct Pending {
    key: Key,
    request: Request,
    since: usize,
    answered: bool,
}

impl Default for Checker {
    fn default() -> Self {
        Self {
            rule: AllowedEffects::Once,
            report: HistoryReport::default(),
            keys: HashMap::new(),
            calls: HashMap::new(),
            order: Vec::new(),
            calls_in_order: Vec::new(),
        }
    }
}

impl Checker {
    fn seen(&mut self, key: Key) -> &mut SeenOperation {
        self.keys.entry(key).or_insert_with(|| {
            self.order.push(key);
            SeenOperation { lives: vec![OperationLife::default()], ..SeenOperation::default() }
        })
    }

    /// The first walk: what ran, in which life, with which requests.
    fn learn(&mut self, event: &HistoryEvent) {
        match *event {
            HistoryEvent::Invoked { key, request, .. } => {
                let seen = self.seen(key);
                let first = *seen.first_request.get_or_insert(request);
                seen.several_requests |= first != request;
            }
            HistoryEvent::Effect(run) => self.learn_effect(run),
            HistoryEvent::Declined(run) => {
                _ = self.life(run.key).produced.insert(run.outcome, run.request)
            }
            HistoryEvent::Expired { key } => {
                let seen = self.seen(key);
                seen.lives.push(OperationLife::default());
                seen.now += 1;
            }
            HistoryEvent::Quiesced { key, end } => self.seen(key).end = Some(end),
            HistoryEvent::Answered { .. } => {}
        }
    }

    fn learn_effect(&mut self, run: LedgerRun) {
        let rule = self.rule;
        self.report.effects += 1;
        let life = self.life(run.key);
        life.produced.insert(run.outcome, run.request);
        let Some(first) = life.effect else {
            life.effect = Some(run);
            return;
        };
        let tolerated = match rule {
            AllowedEffects::Once => false,
            AllowedEffects::Deduplicated => {
                first.request == run.request && first.outcome == run.outcome
            }
        };
        if !tolerated {
            let (key, first, second) = (run.key, first.fence, run.fence);
            self.report.violations.push(HistoryViolation::SecondEffect { key, first, second });
        }
    }

    fn life(&mut self, key: Key) -> &mut OperationLife {
        let seen = self.seen(key);
        let now = seen.now;
        &mut seen.lives[now]
    }

    /// Goes back to every key's first life.
    fn begin_anew(&mut self) {
        for seen in self.keys.values_mut() {
            seen.now = 0;
        }
    }

    /// The second walk: what clients heard.
    fn judge(&mut self, event: &HistoryEvent) {
        match *event {
            HistoryEvent::Invoked { call, key, request } => {
                let since = self.seen(key).now;
                let pending = Pending { key, request, since, answered: false };
                self.calls_in_order.push(call);
                if self.calls.insert(call, pending).is_some() {
                    self.report.violations.push(HistoryViolation::Malformed { call });
                }
            }
            HistoryEvent::Answered { call, answer } => self.judge_answer(call, answer),
            HistoryEvent::Expired { key } => self.seen(key).now += 1,
            HistoryEvent::Effect(_) | HistoryEvent::Declined(_) | HistoryEvent::Quiesced { .. } => {
            }
        }
    }

    fn judge_answer(&mut self, call: Call, answer: ObservedAnswer) {
        let Some(pending) = self.calls.get_mut(&call).filter(|pending| !pending.answered) else {
            self.report.violations.push(HistoryViolation::Malformed { call });
            return;
        };
        pending.answered = true;
        let (key, request, since) = (pending.key, pending.request, pending.since);
        match answer {
            ObservedAnswer::Executed(outcome) => {
                self.judge_outcome(key, outcome, since, Some((call, request)))
            }
            ObservedAnswer::Replayed(outcome) => {
                self.report.replays += 1;
                self.judge_outcome(key, outcome, since, Some((call, request)));
            }
            ObservedAnswer::Mismatch if !self.seen(key).several_requests => {
                self.report.violations.push(HistoryViolation::FalseMismatch { key, call });
            }
            ObservedAnswer::Mismatch
            | ObservedAnswer::Busy
            | ObservedAnswer::InDoubt
            | ObservedAnswer::Gone
            | ObservedAnswer::Unavailable
            | ObservedAnswer::Unknown => {}
        }
    }

    /// An outcome that was answered to a call begun in life `since`, or is stored at the end.
    fn judge_outcome(
        &mut self,
        key: Key,
        outcome: Digest,
        since: usize,
        heard_by: Option<(Call, Request)>,
    ) {
        let seen = self.seen(key);
        let span = since..=seen.now;
        let source = span.clone().find(|at| seen.lives[*at].produced.contains_key(&outcome));
        let Some(source) = source else {
            let ran = span.into_iter().any(|at| !seen.lives[at].produced.is_empty());
            let violation = if ran {
                HistoryViolation::Invented { key, outcome }
            } else {
                HistoryViolation::NothingRan { key, outcome }
            };
            return self.report.violations.push(violation);
        };
        let life = &mut seen.lives[source];
        let produced_by = life.produced[&outcome];
        let first = *life.answered.get_or_insert(outcome);
        if let Some((call, request)) = heard_by.filter(|(_, request)| *request != produced_by) {
            let violation = HistoryViolation::ForeignOutcome { key, call, request, outcome };
            self.report.violations.push(violation);
        }
        if first != outcome {
            let violation = HistoryViolation::DifferentOutcomes { key, first, second: outcome };
            self.report.violations.push(violation);
        }
    }

    /// When all is quiet: everybody was answered, and every key came to an end.
    fn finish(mut self) -> HistoryReport {
        for call in std::mem::take(&mut self.calls_in_order) {
            if let Some(pending) = self.calls.get(&call).filter(|pending| !pending.answered) {
                let key = pending.key;
                self.report.violations.push(HistoryViolation::NeverAnswered { key, call });
            }
        }
        for key in std::mem::take(&mut self.order) {
            self.judge_end(key);
        }
        self.report.keys = self.keys.len();
        self.report.calls = self.calls.len();
        self.report
    }

    fn judge_end(&mut self, key: Key) {
        let seen = self.seen(key);
        let (now, end) = (seen.now, seen.end);
        let life = &seen.lives[now];
        let protected = life.effect.is_some() || life.answered.is_some();
        match end {
            None | Some(FinalState::Pending | FinalState::Running) => {
                self.report.violations.push(HistoryViolation::Stuck { key, end });
            }
            Some(FinalState::Completed(outcome) | FinalState::Failed(outcome)) => {
                self.judge_outcome(key, outcome, now, None);
            }
            Some(end @ (FinalState::Absent | FinalState::Released)) => {
                if protected && self.rule == AllowedEffects::Once {
                    self.report.violations.push(HistoryViolation::FreedAfterEffect { key, end });
                }
            }
            Some(FinalState::InDoubt | FinalState::Buried) => {}
        }
    }
}
