//! What an operation comes to is never said with more certainty than there is.

use hapax_core::retry::{
    AttemptHistory, AttemptResult, AttemptVerdict, Conclusion, Evidence, Repeat,
};

type Attempt = (AttemptResult, Evidence);

const NO_EVIDENCE: Evidence = Evidence { cut: None, knows_key: false };
const KNOWS_KEY: Evidence = Evidence { cut: None, knows_key: true };

const REFUSED: Attempt = heard(AttemptResult::Refused);
const REFUSED_BY_KEY: Attempt = (AttemptResult::Refused, KNOWS_KEY);
const FAILED: Attempt = heard(AttemptResult::Failed);
const NOT_NOW: Attempt = heard(AttemptResult::NotNow);

const fn success(code: u16) -> Attempt {
    heard(AttemptResult::Success { code })
}

const fn heard(result: AttemptResult) -> Attempt {
    (result, NO_EVIDENCE)
}

const fn cut(code: u16) -> Attempt {
    (AttemptResult::Unanswered, Evidence { cut: Some(code), knows_key: false })
}

fn follow(mut history: AttemptHistory, attempts: &[Attempt]) -> Conclusion {
    for (result, evidence) in attempts {
        history.note(*result, *evidence);
    }
    history.conclusion()
}

fn check(attempts: &[Attempt], expected: Conclusion) {
    assert_eq!(follow(AttemptHistory::new(), attempts), expected, "{attempts:?}");
}

#[test]
fn an_answer_is_done_whatever_came_before() {
    check(&[success(200)], Conclusion::Done);
    check(&[heard(AttemptResult::Unanswered), success(201)], Conclusion::Done);
    check(&[heard(AttemptResult::InFlight), success(303)], Conclusion::Done);
    check(&[FAILED, heard(AttemptResult::NotSent), success(204)], Conclusion::Done);
}

#[test]
fn a_refusal_without_a_doubt_is_believed() {
    check(&[heard(AttemptResult::NotSent), NOT_NOW, REFUSED], Conclusion::Refused);
    check(&[heard(AttemptResult::KeyReused)], Conclusion::Refused);
    check(&[heard(AttemptResult::Gone)], Conclusion::Refused);
}

#[test]
fn a_refusal_after_a_doubt_is_believed_only_from_somebody_who_knows_the_key() {
    for doubt in [heard(AttemptResult::Unanswered), heard(AttemptResult::InFlight), FAILED] {
        check(&[doubt, REFUSED], Conclusion::Unknown);
        check(&[doubt, REFUSED_BY_KEY], Conclusion::Refused);
        check(&[doubt, heard(AttemptResult::KeyReused)], Conclusion::Refused);
        check(&[doubt, heard(AttemptResult::Gone)], Conclusion::Unknown);
        check(&[doubt, (AttemptResult::Gone, KNOWS_KEY)], Conclusion::Unknown);
    }
}

#[test]
fn a_server_that_contradicts_half_an_answer_is_not_believed() {
    check(&[cut(201), REFUSED_BY_KEY], Conclusion::Unknown);
    check(&[cut(201), heard(AttemptResult::KeyReused)], Conclusion::Unknown);
    check(&[cut(201), success(200)], Conclusion::Unknown);
    check(&[cut(201), FAILED, success(201)], Conclusion::Done);
}

#[test]
fn giving_up_is_unknown_as_soon_as_one_attempt_may_have_happened() {
    check(&[], Conclusion::GaveUp);
    check(
        &[heard(AttemptResult::NotSent), heard(AttemptResult::NothingRan), NOT_NOW],
        Conclusion::GaveUp,
    );
    check(&[FAILED], Conclusion::Unknown);
    check(
        &[heard(AttemptResult::Unanswered), heard(AttemptResult::NotSent), NOT_NOW],
        Conclusion::Unknown,
    );
}

#[test]
fn what_was_done_and_cannot_be_told_is_unknown() {
    check(&[heard(AttemptResult::NotRetained)], Conclusion::Unknown);
    check(
        &[heard(AttemptResult::Unanswered), heard(AttemptResult::NotRetained)],
        Conclusion::Unknown,
    );
    check(&[heard(AttemptResult::InDoubt)], Conclusion::Unknown);
}

#[test]
fn an_operation_that_was_taken_over_starts_in_doubt() {
    assert_eq!(follow(AttemptHistory::taken_over(), &[]), Conclusion::Unknown);
    assert_eq!(follow(AttemptHistory::taken_over(), &[REFUSED]), Conclusion::Unknown);
    assert_eq!(follow(AttemptHistory::taken_over(), &[REFUSED_BY_KEY]), Conclusion::Refused);
    assert_eq!(follow(AttemptHistory::taken_over(), &[success(200)]), Conclusion::Done);
}

#[test]
fn the_words_are_those_of_the_documents() {
    let words = [Conclusion::Done, Conclusion::Refused, Conclusion::Unknown, Conclusion::GaveUp];
    assert_eq!(words.map(|word| word.to_string()), ["done", "refused", "unknown", "gave up"]);
}

const ATTEMPTS: [Attempt; 17] = [
    heard(AttemptResult::NotSent),
    heard(AttemptResult::Unanswered),
    cut(201),
    heard(AttemptResult::NothingRan),
    heard(AttemptResult::InFlight),
    heard(AttemptResult::KeyReused),
    heard(AttemptResult::InDoubt),
    heard(AttemptResult::NotRetained),
    heard(AttemptResult::Gone),
    success(200),
    success(201),
    (AttemptResult::Success { code: 201 }, KNOWS_KEY),
    REFUSED,
    REFUSED_BY_KEY,
    NOT_NOW,
    FAILED,
    (AttemptResult::Failed, KNOWS_KEY),
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

fn may_have_happened(result: AttemptResult) -> bool {
    result.leaves_doubt() || result == AttemptResult::NotRetained
}

fn is_success(result: AttemptResult) -> bool {
    result.verdict(Repeat::Harmless) == AttemptVerdict::Success
}

/// Whether somebody said what became of everything before.
fn is_conclusive((result, evidence): &Attempt) -> bool {
    let refused = result.verdict(Repeat::Harmless) == AttemptVerdict::Never;
    let about_the_key = refused && evidence.knows_key || *result == AttemptResult::KeyReused;
    is_success(*result) || about_the_key
}

#[test]
fn nothing_is_said_not_to_have_happened_that_may_have() {
    for attempts in sequences() {
        let doubted = attempts.iter().rposition(|(result, _)| may_have_happened(*result));
        let Some(doubted) = doubted else { continue };
        if !attempts[doubted + 1..].iter().any(is_conclusive)
            && !attempts[..doubted].iter().any(|(result, _)| is_success(*result))
        {
            check(&attempts, Conclusion::Unknown);
        }
    }
}

#[test]
fn nothing_is_done_without_an_answer_that_says_so() {
    for attempts in sequences() {
        let conclusion = follow(AttemptHistory::new(), &attempts);
        if conclusion == Conclusion::Done {
            assert!(attempts.iter().any(|(result, _)| is_success(*result)), "{attempts:?}");
        }
    }
}

#[test]
fn nothing_is_unknown_unless_an_attempt_may_have_happened() {
    for attempts in sequences() {
        if follow(AttemptHistory::new(), &attempts) == Conclusion::Unknown {
            let doubtful = |(result, _): &Attempt| may_have_happened(*result);
            assert!(attempts.iter().any(doubtful), "{attempts:?}");
        }
    }
}

#[test]
fn a_request_that_only_reads_is_never_unknown() {
    for attempts in sequences() {
        let conclusion = follow(AttemptHistory::reading(), &attempts);
        assert_ne!(conclusion, Conclusion::Unknown, "{attempts:?}");
    }
}
