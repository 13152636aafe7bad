use hapax_core::retry::{Health, Heard, Repeat, Verdict};

/// What is done about it, when a repetition is harmless and when it is not.
fn check(heard: Heard, harmless: Verdict, harmful: Verdict) {
    assert_eq!(heard.verdict(Repeat::Harmless), harmless, "{heard:?}");
    assert_eq!(heard.verdict(Repeat::Harmful), harmful, "{heard:?}");
}

#[test]
fn what_never_left_is_always_tried_again() {
    check(Heard::NotSent, Verdict::Retry, Verdict::Retry);
    check(Heard::NothingRan, Verdict::Retry, Verdict::Retry);
}

#[test]
fn what_was_sent_and_not_answered_is_repeated_only_if_that_is_harmless() {
    check(Heard::Unanswered, Verdict::Retry, Verdict::Unknown);
    for status in [500, 502, 503, 504, 507, 520, 599] {
        check(Heard::Status(status), Verdict::Retry, Verdict::Unknown);
    }
    for status in [0, 99, 100, 101, 199, 600, 999, u16::MAX] {
        check(Heard::Status(status), Verdict::Retry, Verdict::Unknown);
    }
}

#[test]
fn a_server_that_is_not_ready_is_asked_again_only_if_that_is_harmless() {
    for status in [408, 425, 429] {
        check(Heard::Status(status), Verdict::Retry, Verdict::Never);
    }
}

#[test]
fn a_refusal_is_never_repeated() {
    for status in [
        400, 401, 403, 404, 405, 409, 410, 412, 413, 422, 451, 499, 501, 505, 300, 301, 302, 307,
        308,
    ] {
        check(Heard::Status(status), Verdict::Never, Verdict::Never);
    }
    check(Heard::KeyReused, Verdict::Never, Verdict::Never);
    check(Heard::NotRetained, Verdict::Never, Verdict::Never);
    check(Heard::Gone, Verdict::Never, Verdict::Never);
}

#[test]
fn an_answer_is_handed_on() {
    for status in [200, 201, 202, 204, 303, 304] {
        check(Heard::Status(status), Verdict::Success, Verdict::Success);
    }
}

#[test]
fn a_key_in_flight_is_waited_for_and_a_doubt_is_told() {
    check(Heard::InFlight, Verdict::Wait, Verdict::Wait);
    check(Heard::InDoubt, Verdict::Unknown, Verdict::Unknown);
}

#[test]
fn our_own_refusals_say_more_than_their_status() {
    for (status, problem, heard) in [
        (409, Some("key-in-flight"), Heard::InFlight),
        (409, Some("outcome-in-doubt"), Heard::InDoubt),
        (409, Some("response-not-retained"), Heard::NotRetained),
        (422, Some("key-reused"), Heard::KeyReused),
        (410, Some("key-gone"), Heard::Gone),
        (412, Some("first-sent-too-old"), Heard::Gone),
        (410, None, Heard::Status(410)),
        (503, Some("transaction-rolled-back"), Heard::NothingRan),
        (503, Some("store-unavailable"), Heard::NothingRan),
        (503, Some("execution-not-started"), Heard::NothingRan),
        (504, Some("deadline-passed"), Heard::NothingRan),
        (429, Some("rate-limited"), Heard::Status(429)),
        (503, Some("outcome-not-recorded"), Heard::Status(503)),
        (504, Some("execution-timed-out"), Heard::Status(504)),
        (409, Some("somebody-elses-code"), Heard::Status(409)),
        (409, None, Heard::Status(409)),
    ] {
        assert_eq!(Heard::answer(status, problem), heard);
    }
}

#[test]
fn only_what_may_have_happened_leaves_a_doubt() {
    for heard in [Heard::Unanswered, Heard::InFlight, Heard::InDoubt] {
        assert!(heard.leaves_doubt(), "{heard:?}");
    }
    let settled = [Heard::KeyReused, Heard::NotRetained, Heard::Gone];
    for heard in [Heard::NotSent, Heard::NothingRan].into_iter().chain(settled) {
        assert!(!heard.leaves_doubt(), "{heard:?}");
    }
    for status in [500, 502, 503, 504, 599, 0, 101] {
        assert!(Heard::Status(status).leaves_doubt(), "{status}");
    }
    for status in [200, 302, 400, 404, 409, 408, 425, 429, 501, 505] {
        assert!(!Heard::Status(status).leaves_doubt(), "{status}");
    }
}

#[test]
fn a_destination_that_refuses_is_well_and_one_that_fails_is_not() {
    for heard in [Heard::NotSent, Heard::Unanswered, Heard::NothingRan] {
        assert_eq!(heard.health(), Health::Bad, "{heard:?}");
    }
    let answered = [Heard::InFlight, Heard::KeyReused, Heard::InDoubt, Heard::NotRetained];
    for heard in answered.into_iter().chain([Heard::Gone]) {
        assert_eq!(heard.health(), Health::Good, "{heard:?}");
    }
    for status in [500, 502, 503, 504, 0] {
        assert_eq!(Heard::Status(status).health(), Health::Bad, "{status}");
    }
    for status in [200, 302, 404, 409, 422, 429, 501] {
        assert_eq!(Heard::Status(status).health(), Health::Good, "{status}");
    }
}

#[test]
fn nothing_that_may_have_happened_is_repeated_when_that_is_harmful() {
    let kinds = [Heard::NotSent, Heard::Unanswered, Heard::NothingRan, Heard::InDoubt];
    for heard in kinds.into_iter().chain((0..=u16::MAX).map(Heard::Status)) {
        let retried = heard.verdict(Repeat::Harmful) == Verdict::Retry;
        assert!(!(retried && heard.leaves_doubt()), "{heard:?}");
    }
}
