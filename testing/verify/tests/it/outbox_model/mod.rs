//! Every interleaving of a small outbox, over the reader's own code.
//!
//! Three writers, two of them with the same key, that wait for the key and announce themselves, in
//! either order, take positions, and commit, roll back or are prepared and committed later; what
//! they wrote is visible before they are gone. One relay that looks, now or at what was visible earlier, lists,
//! acknowledges, gains a lane and dies, each as a step of its own, so everything can happen in
//! between.

mod moment;
mod world;

use stateright::{Checker, HasDiscoveries, Model, Property};

use self::{
    moment::{Moment, Phase, WRITERS},
    world::{Flaw, World},
};

#[test]
fn nothing_is_lost_or_swapped_and_nothing_dead_comes_back() {
    let checker = World { flaw: Flaw::None }.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states of the outbox, all of them good");
    checker.assert_properties();
    assert!(states >= 100_000, "the world has become too small");
}

#[track_caller]
fn caught(flaw: Flaw, property: &'static str) {
    let checker =
        World { flaw }.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{flaw:?} must break {property:?}");
}

#[test]
fn listing_the_writers_before_the_read_is_caught() {
    caught(Flaw::ListedBeforeTheRead, "what may come is waited for");
}

#[test]
fn taking_a_prepared_transaction_for_another_writer_is_caught() {
    caught(Flaw::PreparedIgnored, "what may come is waited for");
}

#[test]
fn writers_that_announce_themselves_late_are_caught() {
    caught(Flaw::AnnouncedLate, "what may come is waited for");
}

#[test]
fn giving_up_what_an_old_read_does_not_show_is_caught() {
    caught(Flaw::OldReadDecides, "what may come is waited for");
}

#[test]
fn writers_that_do_not_wait_for_their_key_are_caught() {
    caught(Flaw::NoKeyLock, "a key's events are sent in order");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Lock(usize),
    Announce(usize),
    Number(usize),
    Prepare(usize),
    Commit(usize),
    RollBack(usize),
    /// What it wrote is visible, or gone; now its locks go.
    Release(usize),
    Look,
    /// What is visible now is what a later look may be shown.
    Remember,
    /// The relay is shown what was remembered.
    LookBack,
    /// Only where it is done wrong: lists before the read, for later.
    ListEarly,
    List,
    /// Everything sent so far is acknowledged, and the store has it.
    Acknowledge,
    /// The relay gets the second lane.
    Join,
    /// The relay dies, and another starts from what the store has.
    Restart,
}

impl Model for World {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment::default()]
    }

    fn actions(&self, moment: &Moment, steps: &mut Vec<Step>) {
        for writer in 0..WRITERS {
            match moment.writers[writer].phase {
                Phase::Idle => steps.extend([Step::Lock(writer), Step::Announce(writer)]),
                Phase::Locked => steps.push(Step::Announce(writer)),
                Phase::Waiting => steps.push(Step::Lock(writer)),
                Phase::Announced => steps.extend([
                    Step::Number(writer),
                    Step::Prepare(writer),
                    Step::Commit(writer),
                    Step::RollBack(writer),
                ]),
                Phase::Ended => steps.push(Step::Release(writer)),
                Phase::Gone => {}
            }
        }
        if self.flaw == Flaw::ListedBeforeTheRead {
            steps.push(Step::ListEarly);
        }
        if self.looks_back() {
            steps.extend([Step::Remember, Step::LookBack]);
        }
        steps.extend([Step::Look, Step::List, Step::Acknowledge, Step::Join, Step::Restart]);
    }

    fn next_state(&self, moment: &Moment, step: Step) -> Option<Moment> {
        let mut next = moment.clone();
        let happened = match step {
            Step::Lock(writer) => self.lock(&mut next, writer),
            Step::Announce(writer) => next.announce(writer),
            Step::Number(writer) => next.number(writer),
            Step::Prepare(writer) => next.prepare(writer),
            Step::Commit(writer) => next.end(writer, true),
            Step::RollBack(writer) => next.end(writer, false),
            Step::Release(writer) => next.release(writer),
            Step::Look => self.look(&mut next),
            Step::Remember => next.remember(),
            Step::LookBack => self.look_back(&mut next),
            Step::ListEarly => self.list_early(&mut next),
            Step::List => self.list(&mut next),
            Step::Acknowledge => next.acknowledge(),
            Step::Join => next.join(),
            Step::Restart => next.restart(),
        };
        // A step that changes nothing leads nowhere new.
        (happened && next != *moment).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a key's events are sent in order", |_, moment: &Moment| {
                !moment.swapped
            }),
            Property::always("what is final was sent", |_, moment: &Moment| {
                moment.final_was_sent()
            }),
            Property::always("what may come is waited for", |_, moment: &Moment| {
                moment.waits_for_what_may_come()
            }),
            Property::always("everything comes to an end", Self::comes_to_an_end),
            Property::sometimes("a gap is filled late", |_, moment: &Moment| moment.filled_late),
            Property::sometimes("a gap dies", |_, moment: &Moment| moment.final_over_a_gap()),
            Property::sometimes("an event is sent again", |_, moment: &Moment| moment.sent_again),
        ]
    }
}
