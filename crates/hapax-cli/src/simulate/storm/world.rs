//! Requests become calls, calls become calls of the layer below, and some of them fail.

use std::time::Duration;

use hapax::retry::{Cost, Deadline, Failure, Health, Next, Pass, Withdrawn};

use super::{
    super::{chance::Chance, event_queue::EventQueue},
    dependency::{ArrivedCall, CallIntake, Dependency, Strength},
    layer::{Deadlines, Pile},
    ms,
    tally::StormTally,
};

/// How long anybody wants an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long one attempt waits for an answer.
const TIMEOUT: Duration = ms(1000);
/// From one service to the next.
const HOP: Duration = ms(1);

pub(super) struct StormWorld {
    pile: Pile,
    dependency: Dependency,
    calls: Vec<ServiceCall>,
    events: EventQueue<StormEvent>,
    chance: Chance,
    tally: StormTally,
}

/// One service asks the one below.
struct ServiceCall {
    layer: usize,
    /// The attempt of the layer above that this call is part of; none for a request.
    parent: Option<StormAttempt>,
    /// The request that all of it is for.
    root: usize,
    begun: Duration,
    deadline: Deadline,
    attempt: u32,
    state: StormCallState,
    previous: Duration,
    paid: Option<Withdrawn>,
}

#[derive(Clone, Copy)]
enum StormCallState {
    /// An attempt is under way.
    Asking(Option<Pass>),
    Pausing,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StormAttempt {
    call: usize,
    number: u32,
}

#[derive(Clone, Copy)]
enum StormEvent {
    Request,
    Try { call: usize },
    Answer { attempt: StormAttempt, well: bool },
    Timeout { attempt: StormAttempt },
    Served { attempt: StormAttempt },
    FaultEnds,
}

impl StormWorld {
    /// A world in which nothing has happened yet; what will is counted in slots of this length.
    pub(super) fn new(pile: Pile, strength: Strength, chance: Chance, slot: Duration) -> Self {
        Self {
            pile,
            dependency: Dependency::new(strength),
            calls: Vec::new(),
            events: EventQueue::new(),
            chance,
            tally: StormTally::new(slot),
        }
    }

    /// Lets requests begin at these times, and waits until nothing happens any more.
    pub(super) fn run(mut self, requests: &[Duration]) -> StormTally {
        for at in requests {
            self.events.plan(*at, StormEvent::Request);
        }
        self.events.plan(self.dependency.strength().fault.until, StormEvent::FaultEnds);
        while let Some((now, event)) = self.events.next() {
            self.happens(now, event);
        }
        self.tally
    }

    fn happens(&mut self, now: Duration, event: StormEvent) {
        match event {
            StormEvent::Request => {
                self.tally.at(now).requests += 1;
                let root = self.calls.len();
                self.begin(now, 0, None, root, Deadline::after(now, PATIENCE));
            }
            StormEvent::Try { call } => self.attempt(now, call),
            StormEvent::Answer { attempt, well: true } => self.succeed(now, attempt),
            StormEvent::Answer { attempt, well: false } => self.fail(now, attempt, Cost::Failure),
            StormEvent::Timeout { attempt } => self.fail(now, attempt, Cost::Timeout),
            StormEvent::Served { attempt } => {
                self.events.plan(now + HOP, StormEvent::Answer { attempt, well: true });
                self.dependency.finish();
                self.work(now);
            }
            StormEvent::FaultEnds => self.work(now),
        }
    }

    fn begin(
        &mut self,
        now: Duration,
        layer: usize,
        parent: Option<StormAttempt>,
        root: usize,
        deadline: Deadline,
    ) {
        if let Some(budget) = &self.pile.layers[layer].budget {
            budget.begin();
        }
        self.calls.push(ServiceCall {
            layer,
            parent,
            root,
            begun: now,
            deadline,
            attempt: 0,
            state: StormCallState::Pausing,
            previous: Duration::ZERO,
            paid: None,
        });
        self.attempt(now, self.calls.len() - 1);
    }

    fn attempt(&mut self, now: Duration, at: usize) {
        let call = &mut self.calls[at];
        let layer = &self.pile.layers[call.layer];
        call.attempt += 1;
        let attempt = StormAttempt { call: at, number: call.attempt };
        let admitted = layer.breaker.as_ref().map(|it| it.admit(now, self.chance.number()));
        let Ok(pass) = admitted.transpose() else {
            // An open breaker is an answer: whoever asks is told at once.
            return self.finish(now, at, false);
        };
        call.state = StormCallState::Asking(pass);
        let (root, timeout) = (call.root, TIMEOUT.min(call.deadline.left(now)));
        let (below, deadline) = match self.pile.deadlines {
            Deadlines::Own => (Deadline::after(now, PATIENCE), None),
            Deadlines::Shrinking => {
                let deadline = call.deadline.within(now, timeout);
                (deadline, Some(deadline))
            }
        };
        let layer = call.layer + 1;
        self.events.plan(now + timeout, StormEvent::Timeout { attempt });
        if layer < self.pile.layers.len() {
            self.begin(now, layer, Some(attempt), root, below);
        } else {
            self.reach(now, root, ArrivedCall { attempt, wanted: deadline });
        }
    }

    /// A call reaches the dependency.
    fn reach(&mut self, now: Duration, root: usize, job: ArrivedCall) {
        self.tally.at(now).calls += 1;
        self.tally.late += u64::from(matches!(self.calls[root].state, StormCallState::Over));
        let attempt = job.attempt;
        match self.dependency.arrive(now, job) {
            CallIntake::Begun => self.serve(now, attempt),
            CallIntake::Waits | CallIntake::Lost => {}
            CallIntake::Refused => {
                self.tally.refused += 1;
                self.events.plan(now + HOP, StormEvent::Answer { attempt, well: false });
            }
        }
    }

    /// Whoever is free at the dependency begins with what waits.
    fn work(&mut self, now: Duration) {
        while let Some(job) = self.dependency.begin(now) {
            self.serve(now, job.attempt);
        }
    }

    fn serve(&mut self, now: Duration, attempt: StormAttempt) {
        let service = self.dependency.strength().service;
        self.events.plan(now + service, StormEvent::Served { attempt });
    }

    /// An attempt ended; whether somebody still waited for that.
    fn ended(&self, now: Duration, attempt: StormAttempt, health: Health) -> bool {
        let call = &self.calls[attempt.call];
        let StormCallState::Asking(pass) = call.state else { return false };
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

    fn succeed(&mut self, now: Duration, attempt: StormAttempt) {
        if !self.ended(now, attempt, Health::Good) {
            return;
        }
        let call = &self.calls[attempt.call];
        if let Some(budget) = &self.pile.layers[call.layer].budget {
            budget.succeed(call.paid);
        }
        self.finish(now, attempt.call, true);
    }

    fn fail(&mut self, now: Duration, attempt: StormAttempt, cost: Cost) {
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
        (call.paid, call.previous, call.state) = (paid, pause, StormCallState::Pausing);
        self.events.plan(now + pause, StormEvent::Try { call: attempt.call });
    }

    fn finish(&mut self, now: Duration, at: usize, well: bool) {
        let call = &mut self.calls[at];
        call.state = StormCallState::Over;
        match call.parent {
            Some(attempt) => self.events.plan(now + HOP, StormEvent::Answer { attempt, well }),
            None => {
                self.tally.at(call.begun).well += u32::from(well);
                self.tally.last_answer = now;
            }
        }
    }
}
