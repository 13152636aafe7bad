//! The checker is itself checked: every kind of violation, seeded into a good history, is caught.

use hapax_verify::{
    checker::{AllowedEffects, HistoryReport, HistoryViolation, check},
    history::{Call, Digest, FinalState, HistoryEvent, Key, LedgerRun, ObservedAnswer, Request},
};

const KEY: Key = Key(1);
const PAY: Request = Request(0xa);
const OTHER: Request = Request(0xb);
const DONE: Digest = Digest(0xd1);
const AGAIN: Digest = Digest(0xd2);

fn invoked(call: u64, request: Request) -> HistoryEvent {
    HistoryEvent::Invoked { call: Call(call), key: KEY, request }
}

fn answered(call: u64, answer: ObservedAnswer) -> HistoryEvent {
    HistoryEvent::Answered { call: Call(call), answer }
}

fn run(fence: i64, request: Request, outcome: Digest) -> LedgerRun {
    LedgerRun { key: KEY, fence, request, outcome, at: fence.unsigned_abs() }
}

fn effect(fence: i64) -> HistoryEvent {
    HistoryEvent::Effect(run(fence, PAY, DONE))
}

fn quiesced(end: FinalState) -> HistoryEvent {
    HistoryEvent::Quiesced { key: KEY, end }
}

fn good() -> Vec<HistoryEvent> {
    vec![
        invoked(1, PAY),
        invoked(2, PAY),
        invoked(3, OTHER),
        answered(2, ObservedAnswer::Busy),
        effect(1),
        answered(1, ObservedAnswer::Executed(DONE)),
        answered(3, ObservedAnswer::Mismatch),
        invoked(4, PAY),
        answered(4, ObservedAnswer::Replayed(DONE)),
        quiesced(FinalState::Completed(DONE)),
    ]
}

#[track_caller]
fn caught(history: &[HistoryEvent], expected: &[HistoryViolation]) {
    assert_eq!(check(history, AllowedEffects::Once).violations, expected);
}

#[test]
fn a_good_history_is_accepted_and_counted() {
    let report = check(&good(), AllowedEffects::Once);
    let expected =
        HistoryReport { keys: 1, calls: 4, effects: 1, replays: 1, violations: Vec::new() };
    assert_eq!(report, expected);
}

#[test]
fn an_empty_history_is_accepted() {
    assert_eq!(check(&[], AllowedEffects::Once), HistoryReport::default());
}

#[test]
fn a_second_effect_is_caught() {
    let mut history = good();
    history.insert(5, effect(2));
    caught(&history, &[HistoryViolation::SecondEffect { key: KEY, first: 1, second: 2 }]);
}

#[test]
fn a_second_effect_under_the_same_fence_is_caught() {
    let mut history = good();
    history.insert(5, HistoryEvent::Effect(LedgerRun { at: 9, ..run(1, PAY, DONE) }));
    caught(&history, &[HistoryViolation::SecondEffect { key: KEY, first: 1, second: 1 }]);
}

#[test]
fn an_identical_second_effect_is_caught() {
    let mut history = good();
    history.insert(5, effect(1));
    caught(&history, &[HistoryViolation::SecondEffect { key: KEY, first: 1, second: 1 }]);
}

#[test]
fn a_deduplicating_upstream_may_be_asked_again_for_the_same() {
    let mut history = good();
    history.insert(5, effect(2));
    assert_eq!(check(&history, AllowedEffects::Deduplicated).violations, []);
    let differs = [run(2, OTHER, DONE), run(2, PAY, AGAIN)];
    for run in differs {
        history[5] = HistoryEvent::Effect(run);
        let violations = check(&history, AllowedEffects::Deduplicated).violations;
        let expected = HistoryViolation::SecondEffect { key: KEY, first: 1, second: 2 };
        assert_eq!(violations.first(), Some(&expected));
    }
}

#[test]
fn answers_that_differ_are_caught() {
    let mut history = good();
    history.insert(5, HistoryEvent::Declined(run(1, PAY, AGAIN)));
    history[9] = answered(4, ObservedAnswer::Replayed(AGAIN));
    let violation = HistoryViolation::DifferentOutcomes { key: KEY, first: DONE, second: AGAIN };
    caught(&history, &[violation]);
}

#[test]
fn a_stored_outcome_that_differs_from_the_answer_is_caught() {
    let mut history = good();
    history.insert(5, HistoryEvent::Declined(run(1, PAY, AGAIN)));
    *history.last_mut().unwrap() = quiesced(FinalState::Failed(AGAIN));
    let violation = HistoryViolation::DifferentOutcomes { key: KEY, first: DONE, second: AGAIN };
    caught(&history, &[violation]);
}

#[test]
fn an_invented_outcome_is_caught() {
    let mut history = good();
    history[8] = answered(4, ObservedAnswer::Replayed(AGAIN));
    caught(&history, &[HistoryViolation::Invented { key: KEY, outcome: AGAIN }]);
}

#[test]
fn an_acknowledged_execution_that_never_ran_is_caught() {
    let mut history = good();
    history.remove(4);
    let violation = HistoryViolation::NothingRan { key: KEY, outcome: DONE };
    caught(&history, &[violation; 3]);
}

#[test]
fn an_outcome_of_another_request_is_caught() {
    let mut history = good();
    history[6] = answered(3, ObservedAnswer::Replayed(DONE));
    let (call, request) = (Call(3), OTHER);
    caught(
        &history,
        &[HistoryViolation::ForeignOutcome { key: KEY, call, request, outcome: DONE }],
    );
}

#[test]
fn a_mismatch_without_another_request_is_caught() {
    let mut history = good();
    history[2] = invoked(3, PAY);
    caught(&history, &[HistoryViolation::FalseMismatch { key: KEY, call: Call(3) }]);
}

#[test]
fn a_key_that_is_not_at_an_end_is_caught() {
    for end in [FinalState::Pending, FinalState::Running] {
        let mut history = good();
        *history.last_mut().unwrap() = quiesced(end);
        caught(&history, &[HistoryViolation::Stuck { key: KEY, end: Some(end) }]);
    }
    let mut history = good();
    history.pop();
    caught(&history, &[HistoryViolation::Stuck { key: KEY, end: None }]);
}

#[test]
fn a_key_that_is_free_after_its_effect_is_caught() {
    for end in [FinalState::Absent, FinalState::Released] {
        let history =
            [invoked(1, PAY), effect(1), answered(1, ObservedAnswer::Unknown), quiesced(end)];
        caught(&history, &[HistoryViolation::FreedAfterEffect { key: KEY, end }]);
        assert_eq!(check(&history, AllowedEffects::Deduplicated).violations, []);
    }
}

#[test]
fn a_key_that_forgot_what_it_answered_is_caught() {
    let declined = HistoryEvent::Declined(run(1, PAY, DONE));
    let history = [
        invoked(1, PAY),
        declined,
        answered(1, ObservedAnswer::Executed(DONE)),
        quiesced(FinalState::Absent),
    ];
    caught(&history, &[HistoryViolation::FreedAfterEffect { key: KEY, end: FinalState::Absent }]);
}

#[test]
fn a_call_that_is_never_answered_is_caught() {
    let mut history = good();
    history.remove(8);
    caught(&history, &[HistoryViolation::NeverAnswered { key: KEY, call: Call(4) }]);
}

#[test]
fn a_history_that_contradicts_itself_is_caught() {
    let mut twice = good();
    twice.insert(9, answered(4, ObservedAnswer::Busy));
    caught(&twice, &[HistoryViolation::Malformed { call: Call(4) }]);
    let mut never = good();
    never.insert(9, answered(5, ObservedAnswer::Busy));
    caught(&never, &[HistoryViolation::Malformed { call: Call(5) }]);
    let mut again = good();
    again.insert(1, invoked(1, PAY));
    caught(&again, &[HistoryViolation::Malformed { call: Call(1) }]);
}

#[test]
fn all_that_may_happen_to_a_key_is_accepted() {
    let ends = [
        (vec![], FinalState::Absent),
        (vec![], FinalState::Released),
        (vec![], FinalState::InDoubt),
        (vec![effect(1)], FinalState::InDoubt),
        (vec![effect(1)], FinalState::Completed(DONE)),
        (vec![effect(1)], FinalState::Buried),
        (vec![HistoryEvent::Declined(run(1, PAY, DONE))], FinalState::Failed(DONE)),
        (vec![HistoryEvent::Declined(run(1, PAY, DONE))], FinalState::Released),
    ];
    for (ran, end) in ends {
        for answer in [
            ObservedAnswer::Unknown,
            ObservedAnswer::Unavailable,
            ObservedAnswer::InDoubt,
            ObservedAnswer::Gone,
        ] {
            let mut history = vec![invoked(1, PAY)];
            history.extend(ran.clone());
            history.extend([answered(1, answer), quiesced(end)]);
            caught(&history, &[]);
        }
    }
}

#[test]
fn an_expired_key_may_have_another_effect_and_another_outcome() {
    let next = HistoryEvent::Effect(run(2, OTHER, AGAIN));
    let expired = HistoryEvent::Expired { key: KEY };
    let mut history = good();
    history.pop();
    history.push(invoked(5, PAY));
    history.push(expired);
    // Begun before the expiry and answered after it: the old outcome is still an honest answer.
    history.push(answered(5, ObservedAnswer::Replayed(DONE)));
    history.extend([invoked(6, OTHER), next, answered(6, ObservedAnswer::Executed(AGAIN))]);
    history.push(quiesced(FinalState::Completed(AGAIN)));
    caught(&history, &[]);

    let mut late = history.clone();
    late.insert(late.len() - 1, invoked(7, PAY));
    late.insert(late.len() - 1, answered(7, ObservedAnswer::Replayed(DONE)));
    caught(&late, &[HistoryViolation::Invented { key: KEY, outcome: DONE }]);

    history.retain(|event| *event != expired);
    let violations = check(&history, AllowedEffects::Once).violations;
    let second = HistoryViolation::SecondEffect { key: KEY, first: 1, second: 2 };
    assert_eq!(violations.first(), Some(&second));
}

#[test]
fn a_ledger_read_after_the_answers_counts() {
    let mut history = good();
    let ran = history.remove(4);
    history.push(ran);
    caught(&history, &[]);
}

#[test]
fn keys_are_judged_by_themselves() {
    let (other, mut history) = (Key(2), good());
    history.extend([
        HistoryEvent::Invoked { call: Call(9), key: other, request: PAY },
        HistoryEvent::Answered { call: Call(9), answer: ObservedAnswer::Executed(DONE) },
        HistoryEvent::Quiesced { key: other, end: FinalState::InDoubt },
    ]);
    caught(&history, &[HistoryViolation::NothingRan { key: other, outcome: DONE }]);
}

#[test]
fn violations_read_as_sentences() {
    let violation = HistoryViolation::SecondEffect { key: Key(0xff), first: 1, second: 2 };
    let line = "key ff had a second effect: first under fence 1, again under fence 2";
    assert_eq!(violation.to_string(), line);
}

#[test]
fn a_million_events_are_judged_in_one_walk() {
    let keys = 0..200_000;
    let mut history = Vec::with_capacity(1_000_000);
    for number in keys {
        let (key, call) = (Key(number), Call(number));
        let run = LedgerRun { key, fence: 1, request: PAY, outcome: DONE, at: number };
        history.extend([
            HistoryEvent::Invoked { call, key, request: PAY },
            HistoryEvent::Effect(run),
            HistoryEvent::Answered { call, answer: ObservedAnswer::Executed(DONE) },
            HistoryEvent::Expired { key: Key(0) },
            HistoryEvent::Quiesced { key, end: FinalState::Completed(DONE) },
        ]);
    }
    let report = check(&history, AllowedEffects::Once);
    assert_eq!((report.keys, report.effects), (200_000, 200_000));
    let expected = HistoryViolation::NothingRan { key: Key(0), outcome: DONE };
    assert_eq!(report.violations, [expected], "key 0 expired after it was stored");
}
