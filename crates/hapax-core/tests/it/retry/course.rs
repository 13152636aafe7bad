//! What an operation comes to is never said with more certainty than there is.

use hapax_core::retry::{Conclusion, Course, Evidence, Heard, Repeat, Verdict};

type Attempt = (Heard, Evidence);

const NO_EVIDENCE: Evidence = Evidence { cut: None, knows_key: false };
const KNOWS_KEY: Evidence = Evidence { cut: None, knows_key: true };

const fn said(status: u16) -> Attempt {
    (Heard::Status(status), NO_EVIDENCE)
}

const fn said_of_the_key(status: u16) -> Attempt {
    (Heard::Status(status), KNOWS_KEY)
}

const fn heard(heard: Heard) -> Attempt {
    (heard, NO_EVIDENCE)
}

const fn cut(status: u16) -> Attempt {
    (Heard::Unanswered, Evidence { cut: Some(status), knows_key: false })
}

fn follow(mut course: Course, attempts: &[Attempt]) -> Conclusion {
    for (heard, evidence) in attempts {
        course.note(*heard, *evidence);
    }
    course.conclusion()
}

fn check(attempts: &[Attempt], expected: Conclusion) {
    assert_eq!(follow(Course::new(), attempts), expected, "{attempts:?}");
}

#[test]
fn an_answer_is_done_whatever_came_before() {
    check(&[said(200)], Conclusion::Done);
    check(&[heard(Heard::Unanswered), said(201)], Conclusion::Done);
    check(&[heard(Heard::InFlight), said(303)], Conclusion::Done);
    check(&[said(503), heard(Heard::NotSent), said(204)], Conclusion::Done);
}

#[test]
fn a_refusal_without_a_doubt_is_believed() {
    for status in [302, 400, 402, 404, 409, 422, 501] {
        check(&[heard(Heard::NotSent), said(429), said(status)], Conclusion::Refused);
    }
    check(&[heard(Heard::KeyReused)], Conclusion::Refused);
    check(&[heard(Heard::Gone)], Conclusion::Refused);
}

#[test]
fn a_refusal_after_a_doubt_is_believed_only_from_somebody_who_knows_the_key() {
    for doubt in [heard(Heard::Unanswered), heard(Heard::InFlight), said(502), cut(402)] {
        check(&[doubt, said(401)], Conclusion::Unknown);
        check(&[doubt, said_of_the_key(402)], Conclusion::Refused);
        check(&[doubt, heard(Heard::KeyReused)], Conclusion::Refused);
        check(&[doubt, heard(Heard::Gone)], Conclusion::Unknown);
        check(&[doubt, (Heard::Gone, KNOWS_KEY)], Conclusion::Unknown);
    }
}

#[test]
fn a_server_that_contradicts_half_an_answer_is_not_believed() {
    check(&[cut(201), said_of_the_key(402)], Conclusion::Unknown);
    check(&[cut(201), heard(Heard::KeyReused)], Conclusion::Unknown);
    check(&[cut(201), said(200)], Conclusion::Unknown);
    check(&[cut(201), said(503), said(201)], Conclusion::Done);
}

#[test]
fn what_was_only_accepted_may_be_answered_otherwise_in_the_end() {
    check(&[cut(202), said(201)], Conclusion::Done);
    check(&[cut(202), said_of_the_key(402)], Conclusion::Refused);
}

#[test]
fn a_no_that_broke_off_can_become_a_yes_because_refusals_need_not_be_kept() {
    check(&[cut(402), said(201)], Conclusion::Done);
}

#[test]
fn giving_up_is_unknown_as_soon_as_one_attempt_may_have_happened() {
    check(&[], Conclusion::GaveUp);
    check(&[heard(Heard::NotSent), heard(Heard::NothingRan), said(429)], Conclusion::GaveUp);
    check(&[said(503)], Conclusion::Unknown);
    check(&[heard(Heard::Unanswered), heard(Heard::NotSent), said(429)], Conclusion::Unknown);
}

#[test]
fn what_was_done_and_cannot_be_told_is_unknown() {
    check(&[heard(Heard::NotRetained)], Conclusion::Unknown);
    check(&[heard(Heard::Unanswered), heard(Heard::NotRetained)], Conclusion::Unknown);
    check(&[heard(Heard::InDoubt)], Conclusion::Unknown);
}

#[test]
fn an_operation_that_was_taken_over_starts_in_doubt() {
    assert_eq!(follow(Course::taken_over(), &[]), Conclusion::Unknown);
    assert_eq!(follow(Course::taken_over(), &[said(401)]), Conclusion::Unknown);
    assert_eq!(follow(Course::taken_over(), &[said_of_the_key(402)]), Conclusion::Refused);
    assert_eq!(follow(Course::taken_over(), &[said(200)]), Conclusion::Done);
}

#[test]
fn the_words_are_those_of_the_documents() {
    let words = [Conclusion::Done, Conclusion::Refused, Conclusion::Unknown, Conclusion::GaveUp];
    assert_eq!(words.map(|word| word.to_string()), ["done", "refused", "unknown", "gave up"]);
}

const ATTEMPTS: [Attempt; 19] = [
    heard(Heard::NotSent),
    heard(Heard::Unanswered),
    cut(201),
    cut(402),
    heard(Heard::NothingRan),
    heard(Heard::InFlight),
    heard(Heard::KeyReused),
    heard(Heard::InDoubt),
    heard(Heard::NotRetained),
    heard(Heard::Gone),
    said(200),
    said(201),
    said_of_the_key(201),
    said(307),
    said(402),
    said_of_the_key(402),
    said(429),
    said(503),
    said_of_the_key(503),
];

/// Every sequence of up to four attempts.
fn sequences() -> impl Iterator<Item = Vec<Attempt>> {
    (0..=4_u32).flat_map(|length| {
        (0..ATTEMPTS.len().pow(length)).map(move |number| {
            let digit = |place| number / ATTEMPTS.len().pow(place) % ATTEMPTS.len();
            (0..length).map(|place| ATTEMPTS[digit(place)]).collect()
        })
    })
}

fn may_have_happened(heard: Heard) -> bool {
    heard.leaves_doubt() || heard == Heard::NotRetained
}

fn is_success(heard: Heard) -> bool {
    heard.verdict(Repeat::Harmless) == Verdict::Success
}

/// Whether somebody said what became of everything before.
fn is_conclusive((heard, evidence): &Attempt) -> bool {
    let refused = heard.verdict(Repeat::Harmless) == Verdict::Never;
    let about_the_key = refused && evidence.knows_key || *heard == Heard::KeyReused;
    is_success(*heard) || about_the_key
}

#[test]
fn nothing_is_said_not_to_have_happened_that_may_have() {
    for attempts in sequences() {
        let doubted = attempts.iter().rposition(|(heard, _)| may_have_happened(*heard));
        let Some(doubted) = doubted else { continue };
        if !attempts[doubted + 1..].iter().any(is_conclusive)
            && !attempts[..doubted].iter().any(|(heard, _)| is_success(*heard))
        {
            check(&attempts, Conclusion::Unknown);
        }
    }
}

#[test]
fn nothing_is_done_without_an_answer_that_says_so() {
    for attempts in sequences() {
        let conclusion = follow(Course::new(), &attempts);
        if conclusion == Conclusion::Done {
            assert!(attempts.iter().any(|(heard, _)| is_success(*heard)), "{attempts:?}");
        }
    }
}

#[test]
fn nothing_is_unknown_unless_an_attempt_may_have_happened() {
    for attempts in sequences() {
        if follow(Course::new(), &attempts) == Conclusion::Unknown {
            let doubtful = |(heard, _): &Attempt| may_have_happened(*heard);
            assert!(attempts.iter().any(doubtful), "{attempts:?}");
        }
    }
}

#[test]
fn a_request_that_only_reads_is_never_unknown() {
    for attempts in sequences() {
        let conclusion = follow(Course::reading(), &attempts);
        assert_ne!(conclusion, Conclusion::Unknown, "{attempts:?}");
    }
}
