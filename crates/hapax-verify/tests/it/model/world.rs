//! What can happen in the small world, by the machine's own functions.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Arrival, Attempt, Decision, Doubt, Ended, Fence, Key, Operation, Outcome, Owner, Policy,
    Record, Recovery, RequestParts, ResultPolicy, RetainFrom, Retention, Salt, Scope, Stamp,
    StateTag, Sweep, Tenant, Timestamp, Wish, apply, decide, settle,
    store::{By, Claim, Over, Renew, Settle, Settlement},
    sweep,
};

use super::moment::{ACTORS, CLIENTS, End, Expected, LEASE, Moment, Phase, Verdict, owner};

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
    pub(super) arrival: Arrival,
    pub(super) first_claim: Claim,
}

/// A way in which a store could break its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// It settles whoever asks.
    FenceIgnored,
    /// It lets a claim win over whatever is stored by now.
    StampIgnored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sending {
    Answered,
    AnswerLost,
    RequestLost,
    NotSent,
}

impl World {
    pub(super) fn new(recovery: Recovery, bounds: Bounds, flaw: Flaw) -> Self {
        let window = Duration::from_secs(1000);
        let retention = Retention { window, from: RetainFrom::Creation, tombstone: Duration::ZERO };
        let policy = Policy::new(LEASE, retention, ResultPolicy::Terminal, recovery).unwrap();
        let tenant = Tenant::parse("acme").unwrap();
        let fingerprint = Salt::from_bytes([7; 32])
            .tenant_key(&tenant)
            .fingerprint(&RequestParts { body: b"100", ..RequestParts::default() });
        let operation =
            Operation::new(tenant, Scope::parse("pay").unwrap(), Key::parse("k").unwrap());
        let wish = Wish::Run { request: Some(Bytes::from_static(b"100")) };
        let arrival = Arrival { operation, fingerprint, owner: Owner(0), wish };
        let Decision::Execute(first_claim) = decide(Timestamp::ZERO, &arrival, None, &policy)
        else {
            panic!("an absent key must execute");
        };
        Self { flaw, bounds, policy, arrival, first_claim }
    }

    /// A client or sweeper looks at the store and is told what to do.
    pub(super) fn look(&self, moment: &Moment, at: usize) -> Option<Phase> {
        let (now, stored) = (moment.clock(), moment.record());
        if at < CLIENTS {
            return match decide(now, &self.arrival, stored, &self.policy) {
                Decision::Execute(claim) | Decision::TakeOver { claim, .. } => {
                    Some(claiming(&claim))
                }
                Decision::GiveUp => Some(Phase::Onlooking(stored?.stamp(), Verdict::Doubt)),
                Decision::Replay(outcome) => Some(Phase::Answered(outcome.status())),
                Decision::Busy { .. }
                | Decision::InDoubt { .. }
                | Decision::Mismatch(_)
                | Decision::Gone { .. } => None,
            };
        }
        let record = stored.filter(|record| apply::is_overdue(now, record))?;
        let can_finish = at == ACTORS - 1;
        match sweep(record, can_finish) {
            Sweep::TakeOver(_) => {
                let (over, fence) = (Expected::Abandoned(record.stamp()), record.fence.next());
                Some(Phase::Claiming { over, fence })
            }
            Sweep::Release => Some(Phase::Onlooking(record.stamp(), Verdict::Release)),
            Sweep::GiveUp => Some(Phase::Onlooking(record.stamp(), Verdict::Doubt)),
            Sweep::Leave => None,
        }
    }

    pub(super) fn claim(&self, moment: &Moment, over: Expected, fence: Fence) -> Option<Record> {
        let over = match over {
            Expected::Nothing => Over::Nothing,
            Expected::Spent(stamp) => Over::Spent(self.seen(moment, stamp)),
            Expected::Abandoned(stamp) => Over::Abandoned(self.seen(moment, stamp)),
        };
        let claim = Claim { over, fence, owner: owner(fence), ..self.first_claim.clone() };
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
        let told = Outcome::bare(502);
        let ended = match end {
            End::Answered(status) => Ended::Answered(Outcome::bare(status)),
            End::Unanswered => Ended::Unanswered { told },
            End::NothingSent => Ended::NothingSent { told },
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
            Phase::Claiming { over, fence } => {
                if let Some(record) = self.claim(moment, over, fence) {
                    next.store(record);
                    next.actors[at] = Phase::Owning(fence);
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
            Phase::Idle | Phase::Owning(_) | Phase::Answered(_) => return None,
        }
        Some(next)
    }

    pub(super) fn renew(&self, moment: &Moment, at: usize) -> Option<Moment> {
        let Phase::Owning(fence) = moment.actors[at] else { return None };
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
        let mut next = moment.clone();
        if matches!(sending, Sending::Answered | Sending::AnswerLost) {
            next.effects = (moment.effects + 1).min(2);
            let answer = 200 + u16::try_from(fence.get()).unwrap();
            next.first_answer.get_or_insert(answer);
        }
        let end = match sending {
            Sending::Answered => End::Answered(next.first_answer?),
            Sending::AnswerLost | Sending::RequestLost => End::Unanswered,
            Sending::NotSent => End::NothingSent,
        };
        next.actors[at] = Phase::Ending(fence, end);
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
                Sweep::TakeOver(_) | Sweep::Leave => return false,
            };
            let Some(record) = self.settle(&quiet, &self.onlook(record.stamp(), verdict)) else {
                return false;
            };
            quiet.store(record);
        }
        match decide(quiet.clock(), &self.arrival, quiet.record(), &self.policy) {
            Decision::Replay(_) | Decision::InDoubt { .. } => true,
            Decision::Execute(claim) | Decision::TakeOver { claim, .. } => {
                let Phase::Claiming { over, fence } = claiming(&claim) else { return false };
                let Some(record) = self.claim(&quiet, over, fence) else { return false };
                quiet.store(record);
                let settle = self.end(fence, End::Answered(200));
                let settled = self.settle(&quiet, &settle);
                settled.is_some_and(|record| record.tag() == StateTag::Completed)
            }
            Decision::GiveUp
            | Decision::Busy { .. }
            | Decision::Mismatch(_)
            | Decision::Gone { .. } => false,
        }
    }
}

pub(super) fn claiming(claim: &Claim) -> Phase {
    let over = match claim.over {
        Over::Nothing => Expected::Nothing,
        Over::Spent(stamp) => Expected::Spent(stamp),
        Over::Abandoned(stamp) => Expected::Abandoned(stamp),
    };
    Phase::Claiming { over, fence: claim.fence }
}
