//! Every interleaving of a small world, over the machine's own functions.
//!
//! One key, three clients, two sweepers (one of which can finish work), crashes at any point,
//! owners that pause for ever or wake when they are no longer wanted, and a store clock that jumps
//! by a lease in both directions. Reading and writing are separate steps, so everything can happen
//! in between.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    Arrival, Attempt, Decision, Doubt, Ended, Fence, Key, Operation, Outcome, Owner, Policy,
    Record, Recovery, RequestParts, ResultPolicy, RetainFrom, Retention, Salt, Scope, Stamp,
    StateTag, Sweep, Tenant, Timestamp, Wish, apply, decide, settle,
    store::{By, Claim, Over, Renew, Settle, Settlement},
    sweep,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

const CLIENTS: usize = 3;
const ACTORS: usize = CLIENTS + 2;
const LEASE: Duration = Duration::from_secs(1);
const JUMPS_AHEAD: u8 = 2;
const JUMPS_BACK: u8 = 1;
const CRASHES: u8 = 2;
/// Claims that clients set out to make, all together.
const ATTEMPTS: u8 = 4;

/// A world, and what is wrong with its store.
#[derive(Debug, Clone)]
struct World {
    flaw: Flaw,
    policy: Policy,
    arrival: Arrival,
}

/// A way in which a store could break its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// It settles whoever asks.
    FenceIgnored,
    /// It lets a claim win over whatever is stored by now.
    StampIgnored,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Moment {
    now: u8,
    jumps_back: u8,
    crashes: u8,
    attempts: u8,
    stored: Option<Stored>,
    /// The clients, in an order without meaning, then the sweepers.
    actors: [Phase; ACTORS],
    /// Requests that reached whatever has the effect; two stands for more.
    effects: u8,
    /// What the first of them answered; a deduplicating upstream answers it ever after.
    first_answer: Option<u16>,
    /// The first outcome that was ever stored.
    first_stored: Option<u16>,
    /// Whether an owner ever settled what was not, or no longer, its own.
    usurped: bool,
}

/// A record. Two that differ only in when they were written behave the same here, because nothing
/// in this world expires.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored(Record);

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.stamp().hash(state);
        self.0.outcome().map(Outcome::status).hash(state);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Phase {
    #[default]
    Idle,
    /// It was told to claim and has not yet.
    Claiming { over: Expected, fence: Fence },
    /// It won and has not done anything yet.
    Owning(Fence),
    /// It did something and has not said so yet.
    Ending(Fence, End),
    /// It saw an abandoned record and has not yet written what it makes of it.
    Onlooking(Stamp, Verdict),
    /// It answered its client.
    Answered(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Expected {
    Nothing,
    Spent(Stamp),
    Abandoned(Stamp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Verdict {
    Release,
    Doubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Answered(u16),
    Unanswered,
    NothingSent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// A client reads the record, or a sweeper the overdue ones, and is told what to do.
    Look(usize),
    /// It writes what it was told to, or how its attempt ended.
    Write(usize),
    Renew(usize),
    /// It sends its request: with an answer, with the answer lost, with the request lost.
    Act(usize, Sending),
    Crash(usize),
    JumpAhead,
    JumpBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sending {
    Answered,
    AnswerLost,
    RequestLost,
    NotSent,
}

impl World {
    fn new(recovery: Recovery, flaw: Flaw) -> Self {
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
        Self { flaw, policy, arrival: Arrival { operation, fingerprint, owner: Owner(0), wish } }
    }

    /// A client or sweeper looks at the store and is told what to do.
    fn look(&self, moment: &Moment, at: usize) -> Option<Phase> {
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

    fn claim(&self, moment: &Moment, over: Expected, fence: Fence) -> Option<Record> {
        let over = match over {
            Expected::Nothing => Over::Nothing,
            Expected::Spent(stamp) => Over::Spent(self.seen(moment, stamp)),
            Expected::Abandoned(stamp) => Over::Abandoned(self.seen(moment, stamp)),
        };
        let first = decide(moment.clock(), &self.arrival, None, &self.policy);
        let Decision::Execute(first) = first else { return None };
        let claim = Claim { over, fence, owner: owner(fence), ..first };
        apply::claim(moment.clock(), moment.record(), &claim)
    }

    fn seen(&self, moment: &Moment, stamp: Stamp) -> Stamp {
        match (self.flaw, moment.record()) {
            (Flaw::StampIgnored, Some(record)) => record.stamp(),
            (_, _) => stamp,
        }
    }

    fn settle(&self, moment: &Moment, settle: &Settle) -> Option<Record> {
        let record = moment.record()?;
        let by = match (settle.by, self.flaw) {
            (By::Owner { .. }, Flaw::FenceIgnored) => {
                By::Owner { fence: record.fence, owner: record.owner }
            }
            (by, _) => by,
        };
        apply::settle(moment.clock(), Some(record), &Settle { by, ..settle.clone() })
    }

    fn end(&self, fence: Fence, end: End) -> Settle {
        let attempt = Attempt { id: self.arrival.operation.id(), fence, owner: owner(fence) };
        let told = Outcome::bare(502);
        let ended = match end {
            End::Answered(status) => Ended::Answered(Outcome::bare(status)),
            End::Unanswered => Ended::Unanswered { told },
            End::NothingSent => Ended::NothingSent { told },
        };
        settle(&attempt, ended, &self.policy)
    }

    fn onlook(&self, stamp: Stamp, verdict: Verdict) -> Settle {
        let to = match verdict {
            Verdict::Release => Settlement::Released,
            Verdict::Doubt => Settlement::InDoubt(Doubt::OwnerVanished),
        };
        Settle { id: self.arrival.operation.id(), by: By::Onlooker(stamp), to, keep: LEASE }
    }

    fn write(&self, moment: &Moment, at: usize) -> Option<Moment> {
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

    fn renew(&self, moment: &Moment, at: usize) -> Option<Moment> {
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

    fn act(&self, moment: &Moment, at: usize, sending: Sending) -> Option<Moment> {
        let Phase::Owning(fence) = moment.actors[at] else { return None };
        let mut next = moment.clone();
        if matches!(sending, Sending::Answered | Sending::AnswerLost) {
            next.effects = (moment.effects + 1).min(2);
            next.first_answer.get_or_insert(200 + u16::try_from(fence.get()).unwrap());
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
    fn comes_to_an_end(&self, moment: &Moment) -> bool {
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

impl Moment {
    fn clock(&self) -> Timestamp {
        Timestamp::ZERO.plus(LEASE * u32::from(self.now) + LEASE)
    }

    fn record(&self) -> Option<&Record> {
        self.stored.as_ref().map(|stored| &stored.0)
    }

    fn store(&mut self, record: Record) {
        if let Some(outcome) = record.outcome() {
            self.first_stored.get_or_insert(outcome.status());
        }
        self.stored = Some(Stored(record));
    }

    fn tag(&self) -> Option<StateTag> {
        self.record().map(Record::tag)
    }

    /// Clients are alike, so which of them does something is no difference worth exploring.
    fn without_names(mut self) -> Self {
        self.actors[..CLIENTS].sort_by_cached_key(|phase| {
            let mut hasher = DefaultHasher::new();
            phase.hash(&mut hasher);
            hasher.finish()
        });
        self
    }
}

/// The name of an attempt. Nothing is purged in this world, so fences are names already.
fn owner(fence: Fence) -> Owner {
    Owner(fence.get())
}

fn claiming(claim: &Claim) -> Phase {
    let over = match claim.over {
        Over::Nothing => Expected::Nothing,
        Over::Spent(stamp) => Expected::Spent(stamp),
        Over::Abandoned(stamp) => Expected::Abandoned(stamp),
    };
    Phase::Claiming { over, fence: claim.fence }
}

impl Model for World {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            now: 0,
            jumps_back: 0,
            crashes: 0,
            attempts: 0,
            stored: None,
            actors: [Phase::Idle; ACTORS],
            effects: 0,
            first_answer: None,
            first_stored: None,
            usurped: false,
        }]
    }

    fn actions(&self, moment: &Moment, steps: &mut Vec<Step>) {
        for at in 0..ACTORS {
            match moment.actors[at] {
                Phase::Idle => steps.push(Step::Look(at)),
                Phase::Claiming { .. } | Phase::Ending(..) | Phase::Onlooking(..) => {
                    steps.push(Step::Write(at));
                }
                Phase::Owning(_) => steps.extend([
                    Step::Renew(at),
                    Step::Act(at, Sending::Answered),
                    Step::Act(at, Sending::AnswerLost),
                    Step::Act(at, Sending::RequestLost),
                    Step::Act(at, Sending::NotSent),
                ]),
                Phase::Answered(_) => {}
            }
            if !matches!(moment.actors[at], Phase::Idle | Phase::Answered(_)) {
                steps.push(Step::Crash(at));
            }
        }
        steps.extend([Step::JumpAhead, Step::JumpBack]);
    }

    fn next_state(&self, moment: &Moment, step: Step) -> Option<Moment> {
        let mut next = moment.clone();
        match step {
            Step::Look(at) => {
                next.actors[at] = self.look(moment, at)?;
                if at < CLIENTS && matches!(next.actors[at], Phase::Claiming { .. }) {
                    next.attempts += 1;
                }
            }
            Step::Write(at) => next = self.write(moment, at)?,
            Step::Renew(at) => next = self.renew(moment, at)?,
            Step::Act(at, sending) => next = self.act(moment, at, sending)?,
            Step::Crash(at) if moment.crashes < CRASHES => {
                next.crashes += 1;
                next.actors[at] = Phase::Idle;
            }
            Step::JumpAhead if moment.now < JUMPS_AHEAD => next.now += 1,
            Step::JumpBack if moment.now > 0 && moment.jumps_back < JUMPS_BACK => {
                next.now -= 1;
                next.jumps_back += 1;
            }
            Step::Crash(_) | Step::JumpAhead | Step::JumpBack => return None,
        }
        (next.attempts <= ATTEMPTS).then(|| next.without_names())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("a stored outcome never changes", |_, moment: &Moment| {
                moment.first_stored.is_none_or(|first| {
                    let stored = moment.record().and_then(Record::outcome);
                    stored.map(Outcome::status) == Some(first)
                })
            }),
            Property::always("every client hears what is stored", |_, moment: &Moment| {
                moment.actors.iter().all(|phase| match *phase {
                    Phase::Answered(status) => moment.first_stored == Some(status),
                    Phase::Idle
                    | Phase::Claiming { .. }
                    | Phase::Owning(_)
                    | Phase::Ending(..)
                    | Phase::Onlooking(..) => true,
                })
            }),
            Property::always("what is stored is what happened", |_, moment: &Moment| {
                moment.first_stored.is_none() || moment.first_stored == moment.first_answer
            }),
            Property::always("only the current owner settles", |_, moment: &Moment| {
                !moment.usurped
            }),
            Property::always("nothing is ever stuck", Self::comes_to_an_end),
            Property::sometimes("it completes", |_, moment: &Moment| {
                moment.tag() == Some(StateTag::Completed)
            }),
            Property::sometimes("it is in doubt", |_, moment: &Moment| {
                moment.tag() == Some(StateTag::InDoubt)
            }),
            Property::sometimes("it is given back", |_, moment: &Moment| {
                moment.tag() == Some(StateTag::Released)
            }),
        ];
        if self.policy.recovery() == Recovery::Hold {
            properties.push(Property::always("one effect at most", |_, moment: &Moment| {
                moment.effects <= 1
            }));
        } else {
            properties.push(Property::sometimes("it is sent again", |_, moment: &Moment| {
                moment.effects > 1
            }));
        }
        properties
    }
}

fn explore(recovery: Recovery, states_min: usize) {
    let checker = World::new(recovery, Flaw::None).checker().threads(2).spawn_bfs().join();
    println!("{recovery:?}: {} states, every interleaving of them", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() >= states_min, "the world has become too small");
}

#[track_caller]
fn caught(recovery: Recovery, flaw: Flaw, property: &'static str) {
    let world = World::new(recovery, flaw).checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = world.spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{flaw:?} must break {property:?}");
}

#[test]
fn an_operation_that_must_not_be_repeated_has_one_effect_at_most() {
    explore(Recovery::Hold, 10_000);
}

#[test]
fn an_operation_that_may_be_sent_again_is_settled_by_its_current_owner_alone() {
    explore(Recovery::Resend, 10_000);
}

#[test]
fn a_store_that_ignores_the_fence_is_caught() {
    caught(Recovery::Resend, Flaw::FenceIgnored, "only the current owner settles");
}

#[test]
fn a_store_that_ignores_what_a_claim_expects_is_caught() {
    caught(Recovery::Hold, Flaw::StampIgnored, "one effect at most");
}
