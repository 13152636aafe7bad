//! Requests become calls, calls become calls of the layer below, and some of them fail.

use std::time::Duration;

use hapax::retry::{Cost, Deadline, Failure, Health, Next, Pass, Withdrawn};

use super::{
    super::{chance::Chance, events::Events},
    dependency::{Dependency, Job, Strength, Taken},
    layer::{Deadlines, Pile},
    ms,
    tally::Tally,
};

/// How long anybody wants an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long one attempt waits for an answer.
const TIMEOUT: Duration = ms(1000);
/// From one service to the next.
const HOP: Duration = ms(1);

pub(super) struct World {
    pile: Pile,
    dependency: Dependency,
    calls: Vec<Call>,
    events: Events<Event>,
    chance: Chance,
    tally: Tally,
}

/// One service asks the one below.
struct Call {
    layer: usize,
    /// The attempt of the layer above that this call is part of; none for a request.
    parent: Option<Attempt>,
    /// The request that all of it is for.
    root: usize,
    begun: Duration,
    deadline: Deadline,
    attempt: u32,
    state: State,
    previous: Duration,
    paid: Option<Withdrawn>,
}

#[derive(Clone, Copy)]
enum State {
    /// An attempt is under way.
    Asking(Option<Pass>),
    Pausing,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    call: usize,
    number: u32,
}

#[derive(Clone, Copy)]
enum Event {
    Request,
    Try { call: usize },
    Answer { attempt: Attempt, well: bool },
    Timeout { attempt: Attempt },
    Served { attempt: Attempt },
    FaultEnds,
}

impl World {
    /// A world in which nothing has happened yet; what will is counted in slots of this length.
    pub(super) fn new(pile: Pile, strength: Strength, chance: Chance, slot: Duration) -> Self {
        Self {
            pile,
            dependency: Dependency::new(strength),
            calls: Vec::new(),
            events: Events::new(),
            chance,
            tally: Tally::new(slot),
        }
    }

    /// Lets requests begin at these times, and waits until nothing happens any more.
    pub(super) fn run(mut self, requests: &[Duration]) -> Tally {
        for at in requests {
            self.events.plan(*at, Event::Request);
        }
        self.events.plan(self.dependency.strength().fault.until, Event::FaultEnds);
        while let Some((now, event)) = self.events.next() {
            self.happens(now, event);
        }
        self.tally
    }

    fn happens(&mut self, now: Duration, event: Event) {
        match event {
            Event::Request => {
                self.tally.at(now).requests += 1;
                let root = self.calls.len();
                self.begin(now, 0, None, root, Deadline::after(now, PATIENCE));
            }
            Event::Try { call } => self.attempt(now, call),
            Event::Answer { attempt, well: true } => self.succeed(now, attempt),
            Event::Answer { attempt, well: false } => self.fail(now, attempt, Cost::Failure),
            Event::Timeout { attempt } => self.fail(now, attempt, Cost::Timeout),
            Event::Served { attempt } => {
                self.events.plan(now + HOP, Event::Answer { attempt, well: true });
                self.dependency.finish();
                self.work(now);
            }
            Event::FaultEnds => self.work(now),
        }
    }

    fn begin(
        &mut self,
        now: Duration,
        layer: usize,
        parent: Option<Attempt>,
        root: usize,
        deadline: Deadline,
    ) {
        if let Some(budget) = &self.pile.layers[layer].budget {
            budget.begin();
        }
        self.calls.push(Call {
            layer,
            parent,
            root,
            begun: now,
            deadline,
            attempt: 0,
            state: State::Pausing,
            previous: Duration::ZERO,
            paid: None,
        });
        self.attempt(now, self.calls.len() - 1);
    }

    fn attempt(&mut self, now: Duration, at: usize) {
        let call = &mut self.calls[at];
        let layer = &self.pile.layers[call.layer];
        call.attempt += 1;
        let attempt = Attempt { call: at, number: call.attempt };
        let admitted = layer.breaker.as_ref().map(|it| it.admit(now, self.chance.number()));
        let Ok(pass) = admitted.transpose() else {
            // An open breaker is an answer: whoever asks is told at once.
            return self.finish(now, at, false);
        };
        call.state = State::Asking(pass);
        let (root, timeout) = (call.root, TIMEOUT.min(call.deadline.left(now)));
        let (below, deadline) = match self.pile.deadlines {
            Deadlines::Own => (Deadline::after(now, PATIENCE), None),
            Deadlines::Shrinking => {
                let deadline = call.deadline.within(now, timeout);
                (deadline, Some(deadline))
            }
        };
        let layer = call.layer + 1;
        self.events.plan(now + timeout, Event::Timeout { attempt });
        if layer < self.pile.layers.len() {
            self.begin(now, layer, Some(attempt), root, below);
        } else {
            self.reach(now, root, Job { attempt, wanted: deadline });
        }
    }

    /// A call reaches the dependency.
    fn reach(&mut self, now: Duration, root: usize, job: Job) {
        self.tally.at(now).calls += 1;
        self.tally.late += u64::from(matches!(self.calls[root].state, State::Over));
        let attempt = job.attempt;
        match self.dependency.arrive(now, job) {
            Taken::Begun => self.serve(now, attempt),
            Taken::Waits | Taken::Lost => {}
            Taken::Refused => {
                self.tally.refused += 1;
                self.events.plan(now + HOP, Event::Answer { attempt, well: false });
            }
        }
    }

    /// Whoever is free at the dependency begins with what waits.
    fn work(&mut self, now: Duration) {
        while let Some(job) = self.dependency.begin(now) {
            self.serve(now, job.attempt);
        }
    }

    fn serve(&mut self, now: Duration, attempt: Attempt) {
        let service = self.dependency.strength().service;
        self.events.plan(now + service, Event::Served { attempt });
    }

    /// An attempt ended; whether somebody still waited for that.
    fn ended(&self, now: Duration, attempt: Attempt, health: Health) -> bool {
        let call = &self.calls[attempt.call];
        let State::Asking(pass) = call.state else { return false };
        let breaker = &self.pile.layers[call.layer].breaker;
        match (call.attempt == attempt.number, breaker, pass) {
            (false, _, _) => false,
            (true, Some(breaker), Some(pass)) => {
                breaker.report(now, pass, health);
                true
            }
            (true, _, _) => true,
        }
    }

    fn succeed(&mut self, now: Duration, attempt: Attempt) {
        if !self.ended(now, attempt, Health::Good) {
            return;
        }
        let call = &self.calls[attempt.call];
        if let Some(budget) = &self.pile.layers[call.layer].budget {
            budget.succeed(call.paid);
        }
        self.finish(now, attempt.call, true);
    }

    fn fail(&mut self, now: Duration, attempt: Attempt, cost: Cost) {
        if !self.ended(now, attempt, Health::Bad) {
            return;
        }
        let random = self.chance.number();
        let call = &mut self.calls[attempt.call];
        let layer = &self.pile.layers[call.layer];
        let failure = Failure {
            attempt: call.attempt,
            previous: call.previous,
            told: None,
            left: call.deadline.left(now),
        };
        let Some(Next::Wait(pause)) = layer.schedule.map(|it| it.next(failure, random)) else {
            return self.finish(now, attempt.call, false);
        };
        let Ok(paid) = layer.budget.as_ref().map(|it| it.withdraw(now, cost)).transpose() else {
            return self.finish(now, attempt.call, false);
        };
        (call.paid, call.previous, call.state) = (paid, pause, State::Pausing);
        self.events.plan(now + pause, Event::Try { call: attempt.call });
    }

    fn finish(&mut self, now: Duration, at: usize, well: bool) {
        let call = &mut self.calls[at];
        call.state = State::Over;
        match call.parent {
            Some(attempt) => self.events.plan(now + HOP, Event::Answer { attempt, well }),
            None => {
                self.tally.at(call.begun).well += u32::from(well);
                self.tally.last_answer = now;
            }
        }
    }
}
