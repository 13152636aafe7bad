//! How far a clock is trusted: looks of one process, and of those after it.

use std::time::Duration;

use hapax_core::{
    Record, Recovery, State, StateTag, Timestamp,
    clock::{ClockMark, ClockReading, ClockTrust, Elapsed},
    limits::{CLOCK_AHEAD, CLOCK_STEP},
};

use crate::given::{LEASE, record};

const STAYS: Duration = Duration::from_secs(600);
const TICK: Duration = Duration::from_secs(5);
const DAYS: Duration = Duration::from_secs(2 * 86_400);
const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// A clock, a store that keeps a mark of it, and a process that looks at it every [`TICK`].
struct Scene {
    now: Timestamp,
    mark: Option<ClockMark>,
    watch: ClockTrust,
}

impl Scene {
    fn new() -> Self {
        let watch = ClockTrust::first(ClockReading { now: START, mark: None }, STAYS);
        Self { now: START, mark: Some(watch.mark()), watch }
    }

    fn look_for(&mut self, span: Duration) {
        for _ in 0..span.as_secs() / TICK.as_secs() {
            self.now = self.now.plus(TICK);
            let elapsed = Elapsed { at_least: TICK, at_most: TICK };
            self.watch = self.watch.next(self.now, elapsed, STAYS);
            self.mark = Some(self.watch.mark());
        }
    }

    fn restart_after(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.watch = ClockTrust::first(self.reading(), STAYS);
        self.mark = Some(self.watch.mark());
    }

    fn reading(&self) -> ClockReading {
        ClockReading { now: self.now, mark: self.mark }
    }
}

#[test]
fn a_clock_that_nobody_ever_watched_is_taken_at_its_word() {
    assert_eq!(ClockReading { now: START, mark: None }.trusted(), START);
    assert!(ClockTrust::first(ClockReading { now: START, mark: None }, STAYS).is_trusted());
}

#[test]
fn a_clock_that_goes_steadily_is_trusted_all_the_time() {
    let mut scene = Scene::new();
    for _ in 0..100 {
        scene.look_for(TICK);
        assert!(scene.watch.is_trusted());
        assert_eq!(scene.reading().trusted(), scene.now);
        assert_eq!(scene.watch.mark().trusted_until, scene.now.plus(CLOCK_AHEAD));
    }
}

#[test]
fn a_jump_is_trusted_once_it_has_stayed_and_not_before() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    let before = scene.now;
    scene.now = scene.now.plus(DAYS);
    assert_eq!(scene.reading().trusted(), before.plus(CLOCK_AHEAD), "before anybody looked");
    scene.look_for(STAYS);
    assert!(!scene.watch.is_trusted());
    assert_eq!(scene.reading().trusted(), before.plus(STAYS), "time went on from where it was");
    scene.look_for(TICK);
    assert!(scene.watch.is_trusted());
    assert_eq!(scene.reading().trusted(), scene.now);
}

#[test]
fn what_a_jump_and_its_correction_add_up_to_is_nothing() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    scene.now = scene.now.plus(DAYS);
    scene.look_for(Duration::from_secs(15));
    scene.now = scene.now.minus(DAYS);
    scene.look_for(Duration::from_secs(15));
    assert!(scene.watch.is_trusted());
    assert_eq!(scene.reading().trusted(), scene.now);
    scene.now = scene.now.plus(DAYS);
    scene.look_for(TICK);
    assert!(!scene.watch.is_trusted(), "the next jump is one");
}

#[test]
fn a_clock_that_jumps_again_and_again_is_never_trusted() {
    let mut scene = Scene::new();
    let before = scene.now;
    for _ in 0..5 {
        scene.now = scene.now.plus(DAYS);
        scene.look_for(STAYS - TICK);
        assert!(!scene.watch.is_trusted());
    }
    assert_eq!(scene.reading().trusted(), before.plus(5 * (STAYS - TICK)));
}

#[test]
fn a_restart_goes_on_with_what_was_seen_if_that_is_recent() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    scene.restart_after(STAYS);
    assert!(scene.watch.is_trusted());
    scene.restart_after(STAYS + TICK);
    assert!(!scene.watch.is_trusted());
    scene.look_for(STAYS / 2);
    scene.restart_after(TICK);
    assert!(!scene.watch.is_trusted(), "it has not stayed long enough in both lives");
    scene.look_for(STAYS / 2);
    assert!(scene.watch.is_trusted());
}

#[test]
fn a_restart_while_the_clock_is_ahead_trusts_nothing_new() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    let trusted = scene.reading().mark.map(|mark| mark.trusted_until);
    scene.restart_after(DAYS);
    assert_eq!(Some(scene.reading().trusted()), trusted);
    scene.restart_after(TICK);
    assert_eq!(Some(scene.reading().trusted()), trusted);
}

#[test]
fn a_process_that_was_stopped_for_days_has_watched_nothing() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    let before = scene.now;
    let stopped = Elapsed { at_least: DAYS, at_most: DAYS };
    let watch = scene.watch.next(before.plus(DAYS), stopped, STAYS);
    assert!(!watch.is_trusted());
    assert!(watch.mark().trusted_until <= before.plus(STAYS));
    let judged = scene.watch.judges_retention(before.plus(DAYS), DAYS);
    assert!(judged <= before.plus(STAYS + CLOCK_STEP), "not before it looks, either");
}

#[test]
fn a_slow_answer_is_no_jump() {
    let scene = Scene::new();
    let slow = Elapsed { at_least: TICK, at_most: 10 * TICK };
    let watch = scene.watch.next(START.plus(9 * TICK), slow, STAYS);
    assert!(watch.is_trusted());
    let jumped = scene.watch.next(START.plus(10 * TICK + 2 * CLOCK_STEP), slow, STAYS);
    assert!(!jumped.is_trusted());
}

#[test]
fn a_clock_that_fell_back_says_by_how_much_until_it_has_stayed() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    scene.now = scene.now.minus(DAYS);
    scene.look_for(TICK);
    assert!(scene.watch.is_trusted(), "nothing seems to be past its time");
    assert_eq!(scene.watch.fell_back_by(scene.now, Duration::ZERO), DAYS);
    scene.restart_after(TICK);
    assert!(scene.watch.fell_back_by(scene.now, Duration::ZERO) > DAYS - STAYS);
    scene.look_for(STAYS);
    assert_eq!(scene.watch.fell_back_by(scene.now, Duration::ZERO), Duration::ZERO);
}

#[test]
fn a_store_that_was_made_while_the_clock_was_ahead_does_not_believe_it_twice() {
    for is_restarted in [false, true] {
        let mut scene = Scene::new();
        let goes_on = |scene: &mut Scene| {
            if is_restarted { scene.restart_after(TICK) } else { scene.look_for(TICK) }
        };
        scene.now = scene.now.minus(DAYS);
        goes_on(&mut scene);
        let right = scene.now;
        scene.now = scene.now.plus(DAYS);
        goes_on(&mut scene);
        let judged = scene.watch.judges_retention(scene.now, Duration::ZERO);
        assert!(judged <= right.plus(CLOCK_AHEAD + 2 * TICK), "{is_restarted}: {judged:?}");
        assert!(scene.reading().trusted() <= right.plus(CLOCK_AHEAD + 2 * TICK), "{is_restarted}");
    }
}

#[test]
fn a_lease_is_from_the_future_only_if_no_clock_gave_it() {
    let mut scene = Scene::new();
    scene.look_for(STAYS);
    let ahead = scene.now.plus(DAYS);
    let state = State::Running { lease_until: ahead.plus(LEASE), request: None };
    let owned = Record { state, ..record(StateTag::Running, Recovery::Hold) };
    assert!(owned.until() <= scene.watch.judges(&owned, scene.now, TICK), "no clock gives that");
    let judged = scene.watch.judges(&owned, ahead, TICK);
    assert!(judged < owned.until(), "the clock that gave it is ahead, and its owner at work");
}

#[test]
fn a_mark_is_kept_anew_when_it_is_old_or_says_too_much() {
    let mark = |seen: Duration, until: Duration| ClockMark {
        steady_since: START,
        seen_at: START.plus(seen),
        trusted_until: START.plus(until),
    };
    let kept = mark(Duration::ZERO, CLOCK_AHEAD);
    assert!(mark(TICK, TICK + CLOCK_AHEAD).is_as_good_as(kept));
    assert!(!mark(6 * TICK, 6 * TICK + CLOCK_AHEAD).is_as_good_as(kept), "it is old");
    assert!(!mark(TICK, TICK).is_as_good_as(kept), "it trusts too far");
    assert!(!mark(DAYS, TICK).is_as_good_as(kept), "the clock jumped");
    assert!(!mark(TICK, TICK + CLOCK_AHEAD).is_as_good_as(mark(Duration::ZERO, Duration::ZERO)));
}
