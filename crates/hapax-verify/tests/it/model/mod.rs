//! Every interleaving of a small world, over the machine's own functions.
//!
//! One key, three clients, two sweepers (one of which can finish work), crashes at any point,
//! owners that pause for ever or wake when they are no longer wanted, and a store clock that jumps
//! by a lease in both directions. Reading and writing are separate steps, so everything can happen
//! in between.

mod moment;
mod world;

use hapax_core::{Outcome, Record, Recovery, StateTag};
use stateright::{Checker, HasDiscoveries, Model, Property};

use self::{
    moment::{ACTORS, CLIENTS, Moment, Phase},
    world::{Bounds, Flaw, Sending, World},
};

/// Every client at work, two crashes, and a clock that jumps both ways.
const FULL: Bounds = Bounds { attempts: 3, crashes: 2, ahead: 2, back: 1 };
/// The same with a clock that only jumps ahead.
const AHEAD: Bounds = Bounds { back: 0, ..FULL };
/// The same with two attempts.
const TWO_ATTEMPTS: Bounds = Bounds { attempts: 2, ..FULL };

#[expect(clippy::print_stdout, reason = "how much was explored is worth publishing")]
fn explore(recovery: Recovery, bounds: Bounds, states_min: usize) {
    let world = World::new(recovery, bounds, Flaw::None);
    let checker = world.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{recovery:?} within {bounds:?}: {states} states, all of them good");
    checker.assert_properties();
    assert!(states >= states_min, "the world has become too small");
}

#[track_caller]
fn caught(recovery: Recovery, flaw: Flaw, property: &'static str) {
    let world = World::new(recovery, FULL, flaw);
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{flaw:?} must break {property:?}");
}

#[test]
fn an_operation_that_must_not_be_repeated_has_one_effect_at_most() {
    explore(Recovery::Hold, FULL, 200_000);
}

#[test]
fn an_operation_that_may_be_sent_again_is_settled_by_its_current_owner_alone() {
    explore(Recovery::Resend, AHEAD, 400_000);
}

#[test]
fn a_clock_that_jumps_back_lets_nobody_settle_what_is_not_theirs() {
    explore(Recovery::Resend, TWO_ATTEMPTS, 100_000);
}

#[test]
fn a_store_that_ignores_the_fence_is_caught() {
    caught(Recovery::Resend, Flaw::FenceIgnored, "only the current owner settles");
}

#[test]
fn a_store_that_ignores_what_a_claim_expects_is_caught() {
    caught(Recovery::Hold, Flaw::StampIgnored, "one effect at most");
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
            // Clients in the same phase stand next to each other, and do the same.
            if (1..CLIENTS).contains(&at) && moment.actors[at] == moment.actors[at - 1] {
                continue;
            }
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
            Step::Crash(at) if moment.crashes < self.bounds.crashes => {
                next.crashes += 1;
                next.actors[at] = Phase::Idle;
            }
            Step::JumpAhead if moment.now < self.bounds.ahead => next.now += 1,
            Step::JumpBack if moment.now > 0 && moment.jumps_back < self.bounds.back => {
                next.now -= 1;
                next.jumps_back += 1;
            }
            Step::Crash(_) | Step::JumpAhead | Step::JumpBack => return None,
        }
        (next.attempts <= self.bounds.attempts).then(|| next.without_names())
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
