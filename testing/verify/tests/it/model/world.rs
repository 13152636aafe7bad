//! What can happen in the small world, by the machine's own functions.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Arrival, Attempt, AttemptEnd, Decision, Doubt, Fence, Key, Operation, Outcome, Owner, Policy,
    Record, Recovery, RequestParts, RetainFrom, Retention, RunMode, Salt, Scope, Stamp, StateTag,
    Sweep, Tenant, Timestamp, apply, decide, quiet_from, settle,
    store::{By, Claim, Entry, Over, Renew, Settle, Settlement},
    sweep,
};

use super::moment::{
    ACTORS, CLIENTS, End, Enters, Expected, LEASE, Moment, Phase, Quiet, Told, Verdict,
    WORKS_FOR_LEASES, owner,
};

/// How much may happen in a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Claims that clients set out to make, all together.
    pub(super) attempts: u8,
    pub(super) crashes: u8,
    /// Leases by which the store's clock jumps ahead, and back.
    pub(super) ahead: u8,
    pub(super) back: u8,
}

/// A world, and what is wrong with its store.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) flaw: Flaw,
    pub(super) bounds: Bounds,
    pub(super) policy: Policy,
    /// Whether clients are told that it will be done, and a worker does it.
    pub(super) queues: bool,
    pub(super) arrival: Arrival,
    pub(super) first_claim: Claim,
}

/// A way in which a store, or whoever follows an owner, could break the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// It settles whoever asks.
    FenceIgnored,
    /// It lets a claim win over whatever is stored by now.
    StampIgnored,
    /// "It did not happen" is believed whenever it is said, though what was sent may be at work.
    EarlyNoBelieved,
    /// The same, if only it is heard late enough, whenever it was asked.
    LateNoBelieved,
    /// An arrival that wants to queue makes a doubtful record pending, which forgets its doubt.
    QueueForgetsTheDoubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sending {
    Answered,
    AnswerLost,
    /// Given up before it had its effect, which it may still have.
    Slow,
    RequestLost,
    NotSent,
}

impl World {
    pub(super) fn new(recovery: Recovery, bounds: Bounds, flaw: Flaw) -> Self {
        let window = Duration::from_secs(1000);
        let retention = Retention { window, from: RetainFrom::Creation, tombstone: Duration::ZERO };
        let policy = Policy::new(LEASE, retention, recovery).unwrap();
        let policy = policy.working_for(LEASE * u32::from(WORKS_FOR_LEASES));
        let tenant = Tenant::parse("acme").unwrap();
        let fingerprint = Salt::from_bytes([7; 32])
            .tenant_key(&tenant)
            .fingerprint(&RequestParts { body: b"100", ..RequestParts::default() });
        let operation =
            Operation::new(tenant, Scope::parse("pay").unwrap(), Key::parse("k").unwrap());
        let mode = RunMode::Run { request: Some(Bytes::from_static(b"100")) };
        let arrival = Arrival { operation, fingerprint, owner: Owner(0), mode };
        let Decision::Execute(first_claim) = decide(Timestamp::ZERO, &arrival, None, &policy)
        else {
            panic!("an absent key must execute");
        };
        Self { flaw, bounds, policy, queues: false, arrival, first_claim }
    }

    /// The same world, whose clients do not wait for the work.
    pub(super) fn queueing(mut self) -> Self {
        self.queues = true;
        self.arrival.mode = RunMode::Queue { request: Bytes::from_static(b"100") };
        self
    }

    /// Whether an earlier sending is asked about before there is another one.
    pub(super) fn can_be_asked(&self) -> bool {
        self.policy.recovery() == Recovery::Probe
    }

    /// A client or sweeper looks at the store and is told what to do.
    pub(super) fn look(&self, moment: &Moment, at: usize) -> Option<Phase> {
        let (now, stored) = (moment.clock(), moment.record());
        if at < CLIENTS {
            return match decide(now, &self.arrival, stored, &self.policy) {
                Decision::Execute(claim) => Some(claiming(&claim, None)),
                Decision::TakeOver { claim, .. }
                    if self.queues && self.flaw == Flaw::QueueForgetsTheDoubt =>
                {
                    let Phase::Claiming { over, fence, .. } = claiming(&claim, None) else {
                        return None;
                    };
                    Some(Phase::Claiming { over, fence, entry: Enters::Queues })
                }
                Decision::TakeOver { claim, recovery, quiet_from } => {
                    Some(claiming(&claim, (recovery == Recovery::Probe).then_some(quiet_from)))
                }
                Decision::GiveUp => Some(Phase::Onlooking(stored?.stamp(), Verdict::Doubt)),
                Decision::Replay => {
                    stored?.outcome().map(|outcome| Phase::Answered(outcome.status()))
                }
                Decision::Busy { .. }
                | Decision::InDoubt { .. }
                | Decision::Mismatch(_)
                | Decision::Gone { .. } => None,
            };
        }
        let record = stored.filter(|record| apply::is_overdue(now, record))?;
        let can_finish = at == ACTORS - 1;
        match sweep(record, can_finish) {
            Sweep::TakeOver(recovery) => {
                let (over, fence) = (Expected::Abandoned(record.stamp()), record.fence.next());
                let entry = match recovery {
                    Recovery::Probe => Enters::Follows(quiet_from(record, &self.policy)),
                    Recovery::Resend | Recovery::Hold => Enters::Runs,
                };
                Some(Phase::Claiming { over, fence, entry })
            }
            Sweep::Release => Some(Phase::Onlooking(record.stamp(), Verdict::Release)),
            Sweep::GiveUp => Some(Phase::Onlooking(record.stamp(), Verdict::Doubt)),
            Sweep::Leave => None,
        }
    }

    pub(super) fn claim(
        &self,
        moment: &Moment,
        over: Expected,
        fence: Fence,
        entry: Enters,
    ) -> Option<Record> {
        let over = match over {
            Expected::Nothing => Over::Nothing,
            Expected::Spent(stamp) => Over::Spent(self.seen(moment, stamp)),
            Expected::Abandoned(stamp) => Over::Abandoned(self.seen(moment, stamp)),
        };
        let request = Bytes::from_static(b"100");
        let entry = match entry {
            Enters::Queues => Entry::Queue { pick_up: LEASE, request },
            Enters::Runs | Enters::Follows(_) => {
                Entry::Run { lease: LEASE, request: Some(request) }
            }
        };
        let claim = Claim { over, fence, owner: owner(fence), entry, ..self.first_claim.clone() };
        apply::claim(moment.clock(), moment.record(), &claim)
    }

    pub(super) fn seen(&self, moment: &Moment, stamp: Stamp) -> Stamp {
        match (self.flaw, moment.record()) {
            (Flaw::StampIgnored, Some(record)) => record.stamp(),
            (_, _) => stamp,
        }
    }

    pub(super) fn settle(&self, moment: &Moment, settle: &Settle) -> Option<Record> {
        let record = moment.record()?;
        let by = match (settle.by, self.flaw) {
            (By::Owner { .. }, Flaw::FenceIgnored) => {
                By::Owner { fence: record.fence, owner: record.owner }
            }
            (by, _) => by,
        };
        apply::settle(moment.clock(), Some(record), &Settle { by, ..settle.clone() })
    }

    pub(super) fn end(&self, fence: Fence, end: End) -> Settle {
        let attempt = Attempt { id: self.arrival.operation.id(), fence, owner: owner(fence) };
        let ended = match end {
            End::Answered(status) => AttemptEnd::completed(Outcome::bare(status)),
            End::Unanswered => AttemptEnd::Unanswered,
            End::NothingSent => AttemptEnd::NothingSent,
            End::NotRecovered => AttemptEnd::NotRecovered,
        };
        settle(&attempt, ended, &self.policy)
    }

    pub(super) fn onlook(&self, stamp: Stamp, verdict: Verdict) -> Settle {
        let to = match verdict {
            Verdict::Release => Settlement::Released,
            Verdict::Doubt => Settlement::InDoubt(Doubt::OwnerVanished),
        };
        Settle { id: self.arrival.operation.id(), by: By::Onlooker(stamp), to, keep: LEASE }
    }

    pub(super) fn write(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let mut next = moment.clone();
        next.actors[at] = Phase::Idle;
        match moment.actors[at] {
            Phase::Claiming { over, fence, entry } => {
                if let Some(record) = self.claim(moment, over, fence, entry) {
                    next.store(record);
                    next.actors[at] = match entry {
                        Enters::Runs => Phase::Owning(fence),
                        Enters::Follows(quiet) => Phase::Asking(fence, quiet),
                        Enters::Queues => Phase::Idle,
                    };
                }
            }
            Phase::Ending(fence, end) => {
                if let Some(record) = self.settle(moment, &self.end(fence, end)) {
                    if let End::Answered(status) = end {
                        next.actors[at] = Phase::Answered(status);
                    }
                    next.usurped |= record.fence != fence;
                    next.store(record);
                }
            }
            Phase::Onlooking(stamp, verdict) => {
                if let Some(record) = self.settle(moment, &self.onlook(stamp, verdict)) {
                    next.store(record);
                }
            }
            Phase::Idle
            | Phase::Asking(..)
            | Phase::Asked(..)
            | Phase::Owning(_)
            | Phase::Answered(_) => return None,
        }
        Some(next)
    }

    pub(super) fn renew(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let (Phase::Owning(fence) | Phase::Asking(fence, _) | Phase::Asked(fence, ..)) =
            moment.actors[at]
        else {
            return None;
        };
        let mut next = moment.clone();
        let id = self.arrival.operation.id();
        let renew = Renew { id, fence, owner: owner(fence), lease: LEASE };
        match apply::renew(moment.clock(), moment.record(), &renew) {
            Some(record) => next.store(record),
            // Told that it was followed, it stops before it does anything.
            None => next.actors[at] = Phase::Idle,
        }
        Some(next)
    }

    pub(super) fn act(&self, moment: &Moment, at: usize, sending: Sending) -> Option<Moment> {
        let Phase::Owning(fence) = moment.actors[at] else { return None };
        // Where it is asked before there is another sending, nothing leaves after its lease.
        if self.can_be_asked() && sending != Sending::NotSent {
            let record = moment.record().filter(|record| record.fence == fence)?;
            if record.until() <= moment.clock() {
                return None;
            }
        }
        let mut next = moment.clone();
        match sending {
            Sending::Answered | Sending::AnswerLost => next.take_effect(fence),
            Sending::Slow => {
                let free = next.at_work.iter().position(Option::is_none)?;
                next.at_work[free] = Some(moment.now);
            }
            Sending::RequestLost | Sending::NotSent => {}
        }
        let end = match sending {
            Sending::Answered => End::Answered(next.first_answer?),
            Sending::AnswerLost | Sending::Slow | Sending::RequestLost => End::Unanswered,
            Sending::NotSent => End::NothingSent,
        };
        next.actors[at] = Phase::Ending(fence, end);
        Some(next)
    }

    /// It asks whether what was sent before it had its effect.
    pub(super) fn ask(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let Phase::Asking(fence, quiet) = moment.actors[at] else { return None };
        let mut next = moment.clone();
        let told = match moment.first_answer {
            Some(status) => Told::Happened(status),
            None => Told::Nothing { was_quiet: moment.clock() >= quiet },
        };
        next.actors[at] = Phase::Asked(fence, quiet, told);
        Some(next)
    }

    /// It hears what was said, however long that took.
    pub(super) fn hear(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let Phase::Asked(fence, quiet, told) = moment.actors[at] else { return None };
        let mut next = moment.clone();
        next.actors[at] = match told {
            Told::Happened(status) => Phase::Ending(fence, End::Answered(status)),
            Told::Nothing { was_quiet } => {
                let believed = match self.flaw {
                    Flaw::EarlyNoBelieved => true,
                    Flaw::LateNoBelieved => moment.clock() >= quiet,
                    Flaw::None
                    | Flaw::FenceIgnored
                    | Flaw::StampIgnored
                    | Flaw::QueueForgetsTheDoubt => was_quiet,
                };
                if believed {
                    Phase::Owning(fence)
                } else {
                    Phase::Ending(fence, End::NotRecovered)
                }
            }
        };
        Some(next)
    }

    /// An owner without an answer follows itself: the next fence, and it asks before it sends.
    pub(super) fn follow_itself(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let Phase::Ending(fence, End::Unanswered) = moment.actors[at] else { return None };
        let record = moment.record().filter(|record| record.fence == fence)?;
        let quiet = moment.clock().plus(self.policy.works_for());
        let over = Expected::Abandoned(record.stamp());
        let record = self.claim(moment, over, fence.next(), Enters::Runs)?;
        let mut next = moment.clone();
        next.store(record);
        next.actors[at] = Phase::Asking(fence.next(), quiet);
        Some(next)
    }

    /// What nobody waits for any more has its effect, or never will.
    pub(super) fn end_work(&self, moment: &Moment, work: usize, happens: bool) -> Option<Moment> {
        moment.at_work[work]?;
        let mut next = moment.clone();
        next.at_work[work] = None;
        next.at_work.sort();
        if happens {
            next.take_effect(Fence::FIRST);
        }
        Some(next)
    }

    /// Whether a key in this state still comes to an end: leases run out, a sweeper looks, and a
    /// new client asks.
    pub(super) fn comes_to_an_end(&self, moment: &Moment) -> bool {
        let Some(record) = moment.record() else { return true };
        let mut quiet = moment.clone();
        quiet.now = u8::MAX;
        if apply::is_overdue(quiet.clock(), record) {
            let verdict = match sweep(record, false) {
                Sweep::Release => Verdict::Release,
                Sweep::GiveUp => Verdict::Doubt,
                // It waits for a process that can finish it.
                Sweep::Leave => return record_is_pending(moment),
                Sweep::TakeOver(_) => return false,
            };
            let Some(record) = self.settle(&quiet, &self.onlook(record.stamp(), verdict)) else {
                return false;
            };
            quiet.store(record);
        }
        match decide(quiet.clock(), &self.arrival, quiet.record(), &self.policy) {
            Decision::Replay | Decision::InDoubt { .. } => true,
            // A worker picks it up.
            Decision::Busy { .. } => record_is_pending(&quiet),
            Decision::Execute(claim) | Decision::TakeOver { claim, .. } => {
                let Phase::Claiming { over, fence, .. } = claiming(&claim, None) else {
                    return false;
                };
                let Some(record) = self.claim(&quiet, over, fence, Enters::Runs) else {
                    return false;
                };
                quiet.store(record);
                let settle = self.end(fence, End::Answered(200));
                let settled = self.settle(&quiet, &settle);
                settled.is_some_and(|record| record.tag() == StateTag::Completed)
            }
            Decision::GiveUp | Decision::Mismatch(_) | Decision::Gone { .. } => false,
        }
    }
}

fn record_is_pending(moment: &Moment) -> bool {
    moment.tag() == Some(StateTag::Pending)
}

pub(super) fn claiming(claim: &Claim, follows: Option<Quiet>) -> Phase {
    let over = match claim.over {
        Over::Nothing => Expected::Nothing,
        Over::Spent(stamp) => Expected::Spent(stamp),
        Over::Abandoned(stamp) => Expected::Abandoned(stamp),
    };
    let entry = match (&claim.entry, follows) {
        (Entry::Queue { .. }, _) => Enters::Queues,
        (Entry::Run { .. }, Some(quiet)) => Enters::Follows(quiet),
        (Entry::Run { .. }, None) => Enters::Runs,
    };
    Phase::Claiming { over, fence: claim.fence, entry }
}
