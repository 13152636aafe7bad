use hapax_core::retry::{AttemptResult, AttemptVerdict, Health, Repeat};

const DONE: AttemptResult = AttemptResult::Success { code: 1 };

const ALL: [AttemptResult; 12] = [
    AttemptResult::NotSent,
    AttemptResult::Unanswered,
    AttemptResult::NothingRan,
    AttemptResult::InFlight,
    AttemptResult::KeyReused,
    AttemptResult::InDoubt,
    AttemptResult::NotRetained,
    AttemptResult::Gone,
    DONE,
    AttemptResult::NotNow,
    AttemptResult::Refused,
    AttemptResult::Failed,
];

/// What is done about it, when a repetition is harmless and when it is not.
fn check(result: AttemptResult, harmless: AttemptVerdict, harmful: AttemptVerdict) {
    assert_eq!(result.verdict(Repeat::Harmless), harmless, "{result:?}");
    assert_eq!(result.verdict(Repeat::Harmful), harmful, "{result:?}");
}

#[test]
fn what_never_left_is_always_tried_again() {
    check(AttemptResult::NotSent, AttemptVerdict::Retry, AttemptVerdict::Retry);
    check(AttemptResult::NothingRan, AttemptVerdict::Retry, AttemptVerdict::Retry);
}

#[test]
fn what_was_sent_and_not_answered_is_repeated_only_if_that_is_harmless() {
    check(AttemptResult::Unanswered, AttemptVerdict::Retry, AttemptVerdict::Unknown);
    check(AttemptResult::Failed, AttemptVerdict::Retry, AttemptVerdict::Unknown);
}

#[test]
fn a_server_that_is_not_ready_is_asked_again_only_if_that_is_harmless() {
    check(AttemptResult::NotNow, AttemptVerdict::Retry, AttemptVerdict::Never);
}

#[test]
fn a_refusal_is_never_repeated() {
    check(AttemptResult::Refused, AttemptVerdict::Never, AttemptVerdict::Never);
    check(AttemptResult::KeyReused, AttemptVerdict::Never, AttemptVerdict::Never);
    check(AttemptResult::NotRetained, AttemptVerdict::Never, AttemptVerdict::Never);
    check(AttemptResult::Gone, AttemptVerdict::Never, AttemptVerdict::Never);
}

#[test]
fn an_answer_is_handed_on() {
    check(DONE, AttemptVerdict::Success, AttemptVerdict::Success);
}

#[test]
fn a_key_in_flight_is_waited_for_and_a_doubt_is_told() {
    check(AttemptResult::InFlight, AttemptVerdict::Wait, AttemptVerdict::Wait);
    check(AttemptResult::InDoubt, AttemptVerdict::Unknown, AttemptVerdict::Unknown);
}

#[test]
fn only_what_may_have_happened_leaves_a_doubt() {
    let doubtful = [
        AttemptResult::Unanswered,
        AttemptResult::InFlight,
        AttemptResult::InDoubt,
        AttemptResult::Failed,
    ];
    for result in ALL {
        assert_eq!(result.leaves_doubt(), doubtful.contains(&result), "{result:?}");
    }
}

#[test]
fn a_destination_that_refuses_is_well_and_one_that_fails_is_not() {
    let bad = [
        AttemptResult::NotSent,
        AttemptResult::Unanswered,
        AttemptResult::NothingRan,
        AttemptResult::Failed,
    ];
    for result in ALL {
        let expected = if bad.contains(&result) { Health::Bad } else { Health::Good };
        assert_eq!(result.health(), expected, "{result:?}");
    }
}

#[test]
fn nothing_that_may_have_happened_is_repeated_when_that_is_harmful() {
    for result in ALL {
        let retried = result.verdict(Repeat::Harmful) == AttemptVerdict::Retry;
        assert!(!(retried && result.leaves_doubt()), "{result:?}");
    }
}
