//! Every interleaving of a small world, over the machine's own functions.
//!
//! One key, three clients, two sweepers (one of which can finish work), crashes at any point,
//! owners that pause for ever or wake when they are no longer wanted, and a store clock that jumps
//! by a lease in both directions. Reading and writing are separate steps, so everything can happen
//! in between. Where the effect can be asked about, sendings that were given up stay at work and have
//! their effect later, whoever is asked answers late, and clients may leave the work to a worker.

mod moment;
mod world;

use hapax_core::{Outcome, Record, Recovery, StateTag};
use stateright::{Checker, HasDiscoveries, Model, Property};

use self::{
    moment::{ACTORS, AT_WORK_MAX, CLIENTS, Moment, Phase},
    world::{Bounds, Flaw, Sending, World},
};

/// Every client at work, two crashes, and a clock that jumps both ways.
const FULL: Bounds = Bounds { attempts: 3, crashes: 2, ahead: 2, back: 1 };
/// The same with a clock that only jumps ahead.
const AHEAD: Bounds = Bounds { back: 0, ..FULL };
/// Time passes, one crash: sendings are at work for two leases after they were given up.
const SLOW: Bounds = Bounds { attempts: 2, crashes: 1, ahead: 4, back: 0 };
/// The same with two attempts.
const TWO_ATTEMPTS: Bounds = Bounds { attempts: 2, ..FULL };

fn explore(recovery: Recovery, bounds: Bounds, states_min: usize) {
    explore_world(World::new(recovery, bounds, Flaw::None), states_min);
}

#[expect(clippy::print_stdout, reason = "how much was explored is worth publishing")]
fn explore_world(world: World, states_min: usize) {
    let (recovery, bounds, queues) = (world.policy.recovery(), world.bounds, world.queues);
    let checker = world.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    let how = if queues { "queued" } else { "waited for" };
    println!("{recovery:?}, {how}, within {bounds:?}: {states} states, all of them good");
    checker.assert_properties();
    assert!(states >= states_min, "the world has become too small");
}

#[track_caller]
fn caught(recovery: Recovery, flaw: Flaw, property: &'static str) {
    caught_in(World::new(recovery, FULL, flaw), property);
}

#[track_caller]
fn caught_in(world: World, property: &'static str) {
    let flaw = world.flaw;
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
fn an_operation_that_can_be_asked_about_has_one_effect_however_slow_it_is() {
    explore(Recovery::Probe, SLOW, 100_000);
}

#[test]
fn an_accepted_operation_has_one_effect_whoever_is_asked_and_however_slow_it_is() {
    explore_world(World::new(Recovery::Probe, SLOW, Flaw::None).queueing(), 20_000);
    explore_world(World::new(Recovery::Hold, SLOW, Flaw::None).queueing(), 10_000);
}

#[test]
fn a_no_that_is_believed_while_the_first_sending_is_at_work_is_caught() {
    let early = World::new(Recovery::Probe, SLOW, Flaw::EarlyNoBelieved);
    caught_in(early, "one effect at most");
    let late = World::new(Recovery::Probe, SLOW, Flaw::LateNoBelieved);
    caught_in(late, "one effect at most");
}

#[test]
fn a_queue_that_forgets_a_doubt_is_caught() {
    let forgets = World::new(Recovery::Probe, SLOW, Flaw::QueueForgetsTheDoubt).queueing();
    caught_in(forgets, "one effect at most");
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
    /// It asks whether an earlier sending had its effect, and hears the answer.
    Ask(usize),
    Hear(usize),
    /// It follows itself, to send once more.
    FollowItself(usize),
    /// A sending that was given up has its effect after all, or never will.
    EndWork(usize, bool),
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
            at_work: [None; AT_WORK_MAX],
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
                Phase::Claiming { .. } | Phase::Onlooking(..) => steps.push(Step::Write(at)),
                Phase::Ending(..) => {
                    steps.push(Step::Write(at));
                    if self.can_be_asked() {
                        steps.push(Step::FollowItself(at));
                    }
                }
                Phase::Asking(..) => steps.extend([Step::Renew(at), Step::Ask(at)]),
                Phase::Asked(..) => steps.extend([Step::Renew(at), Step::Hear(at)]),
                Phase::Owning(_) => {
                    steps.extend([
                        Step::Renew(at),
                        Step::Act(at, Sending::Answered),
                        Step::Act(at, Sending::AnswerLost),
                        Step::Act(at, Sending::RequestLost),
                        Step::Act(at, Sending::NotSent),
                    ]);
                    if self.can_be_asked() {
                        steps.push(Step::Act(at, Sending::Slow));
                    }
                }
                Phase::Answered(_) => {}
            }
            if !matches!(moment.actors[at], Phase::Idle | Phase::Answered(_)) {
                steps.push(Step::Crash(at));
            }
        }
        for work in 0..AT_WORK_MAX {
            steps.extend([Step::EndWork(work, true), Step::EndWork(work, false)]);
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
            Step::Ask(at) => next = self.ask(moment, at)?,
            Step::Hear(at) => next = self.hear(moment, at)?,
            Step::FollowItself(at) => next = self.follow_itself(moment, at)?,
            Step::EndWork(work, happens) => next = self.end_work(moment, work, happens)?,
            Step::Crash(at) if moment.crashes < self.bounds.crashes => {
                next.crashes += 1;
                next.actors[at] = Phase::Idle;
            }
            Step::JumpAhead if moment.now < self.bounds.ahead && moment.may_move_on() => {
                next.now += 1;
            }
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
                    | Phase::Asking(..)
                    | Phase::Asked(..)
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
        if self.can_be_asked() {
            properties.push(Property::sometimes("it happens after all", |_, moment: &Moment| {
                moment.effects == 1 && moment.tag() == Some(StateTag::InDoubt)
            }));
        }
        if self.policy.recovery() != Recovery::Resend {
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
