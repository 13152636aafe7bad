//! What answers and counts mean, wherever a probe asks for one operation several times.

use std::collections::BTreeSet;

use crate::{Defect, DefectClass, Examiner, Exchange, RawAnswer};

/// How much of a body is shown where two differ.
const EXCERPT_BYTES: usize = 24;

/// What the second of two answers says of the effect that the first one named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerLikeness {
    /// It is the same.
    SameEffect,
    /// It is another.
    OtherEffect,
    /// Nobody can tell: neither names anything, and both say the same.
    Unclear,
}

/// What is wrong, if one operation was asked for by all of these and had so many effects.
///
/// Sees two effects, two names of effects, and an effect that was lost after a success.
pub(crate) fn judge_duplicates(
    examiner: &Examiner,
    exchanges: &[&Exchange],
    effects: Option<u64>,
) -> Vec<Defect> {
    let succeeded: Vec<_> = exchanges.iter().filter(|exchange| exchange.succeeded()).collect();
    let shown_by: Vec<_> = exchanges.iter().map(|exchange| exchange.number).collect();
    let mut defects = Vec::new();
    let mut add = |class, sentence: String, advice| {
        defects.push(Defect { class, sentence, advice, shown_by: shown_by.clone() });
    };
    match effects {
        Some(0) if !succeeded.is_empty() => add(
            DefectClass::Safety,
            format!(
                "a request was answered with {}, and its effect is not there",
                statuses(exchanges)
            ),
            "answer with success only after the effect is durable",
        ),
        Some(many) if many > 1 => add(
            DefectClass::Safety,
            format!(
                "one key had {many} effects, so the same thing was done {many} times: {} requests with it were \
                 answered with {}",
                exchanges.len(),
                statuses(exchanges)
            ),
            "claim the key in one atomic step before the effect (write it under a unique index and see whether that \
             succeeded; to look first and write then lets two through), and let whoever loses wait or be refused",
        ),
        Some(_) | None => {}
    }
    let names: BTreeSet<_> = match &examiner.api().id {
        Some(id) => succeeded.iter().filter_map(|one| id.text(&one.answer()?.body)).collect(),
        None => BTreeSet::new(),
    };
    if names.len() > 1 {
        add(
            DefectClass::Safety,
            format!("one key was answered with {} different names of its effect", names.len()),
            "answer duplicates with what was stored of the first answer",
        );
    }
    defects
}

/// Why nothing can be told by this: it was not answered, or only told to come back later.
pub(crate) fn untold(exchange: &Exchange) -> Option<String> {
    match exchange.status() {
        None => Some(format!("{} was not answered: {}", exchange.label, exchange.end.describe())),
        Some(status @ (429 | 503)) => {
            Some(format!("{} was told to come back later ({status})", exchange.label))
        }
        Some(_) => None,
    }
}

/// What is wrong with an answer of 5xx to this: `a changed body under a used key`. A 503 only says to come back.
pub(crate) fn judge_crash(exchange: &Exchange, asked: &str) -> Option<Defect> {
    let answer = exchange.answer().filter(|answer| answer.status >= 500 && answer.status != 503)?;
    Some(Defect {
        class: DefectClass::Contract,
        sentence: format!(
            "{asked} was answered with {}: the client cannot tell whether anything happened, and asks again for ever",
            answer.status
        ),
        advice: "answer what a client did wrong with a 4xx that says what it is",
        shown_by: vec![exchange.number],
    })
}

/// What is wrong if what was refused has an effect all the same.
pub(crate) fn judge_refusal(exchange: &Exchange, effects: Option<u64>) -> Option<Defect> {
    let answer = exchange.answer().filter(|answer| answer.is_refusal())?;
    let many = effects.filter(|effects| *effects > 0)?;
    Some(Defect {
        class: DefectClass::Safety,
        sentence: format!(
            "a request was refused with {}, and its effect is there ({many}): a client that asks again has it twice",
            answer.status
        ),
        advice: "look at key, credentials and body before the effect",
        shown_by: vec![exchange.number],
    })
}

/// What is wrong if a retry that was answered before is answered otherwise after this: `100 other keys`.
pub(crate) fn judge_later_retry(
    examiner: &Examiner,
    first: &RawAnswer,
    (before, earlier): (&Exchange, &RawAnswer),
    (after, later): (&Exchange, &RawAnswer),
    since: &str,
) -> Option<Defect> {
    let shown_by = vec![before.number, after.number];
    if later.status != earlier.status {
        let crash = judge_crash(after, &format!("a retry {since}"));
        return Some(crash.unwrap_or_else(|| Defect {
            class: DefectClass::Contract,
            sentence: format!(
                "a retry was answered with {}, and {since} with {}: it was not taken for the same request any more",
                earlier.status, later.status
            ),
            advice: "let nothing but key, owner, operation and content decide whether a request is the same",
            shown_by,
        }));
    }
    let is_same = |answer| likeness(examiner, first, answer) == AnswerLikeness::SameEffect;
    (is_same(earlier) && !is_same(later)).then(|| Defect {
        class: DefectClass::Contract,
        sentence: format!(
            "a retry was given the first answer, and {since} another one: it was taken for a new request"
        ),
        advice: "let nothing but key, owner, operation and content decide whether a request is the same",
        shown_by,
    })
}

/// Whether two answers are about one effect, by its names, by what they say, and by what they say about themselves.
pub(crate) fn likeness(
    examiner: &Examiner,
    first: &RawAnswer,
    second: &RawAnswer,
) -> AnswerLikeness {
    let name = |answer: &RawAnswer| examiner.api().id.as_ref()?.text(&answer.body);
    let is_marked = |answer| replay_marker(answer).is_some();
    let says_more = second.is_success() && is_marked(second) && !is_marked(first);
    match (name(first), name(second)) {
        (Some(one), Some(other)) if one == other => AnswerLikeness::SameEffect,
        (Some(_), Some(_)) => AnswerLikeness::OtherEffect,
        _ if says_more => AnswerLikeness::SameEffect,
        _ if first.body != second.body => AnswerLikeness::OtherEffect,
        _ if examiner.learned().answers_differ => AnswerLikeness::SameEffect,
        _ => AnswerLikeness::Unclear,
    }
}

/// Whether the same content under two keys had two effects, if both were answered with success.
pub(crate) fn told_apart(
    examiner: &Examiner,
    first: &RawAnswer,
    second: &RawAnswer,
    effects: Option<u64>,
) -> AnswerLikeness {
    match (effects, likeness(examiner, first, second)) {
        (Some(many), _) if many > 1 => AnswerLikeness::OtherEffect,
        // The count is behind, or a name was given to what did not happen.
        (Some(_), AnswerLikeness::OtherEffect) => AnswerLikeness::Unclear,
        (Some(_), _) => AnswerLikeness::SameEffect,
        (None, likeness) => likeness,
    }
}

/// The header by which an answer says that it was given before.
pub(crate) fn replay_marker(answer: &RawAnswer) -> Option<&str> {
    let says = |(name, value): &&(String, String)| {
        let value = value.trim().to_ascii_lowercase();
        let is_about_replay = name.contains("replay") || name.contains("idempot");
        is_about_replay
            && matches!(value.as_str(), "true" | "1" | "?1" | "yes" | "replayed" | "hit")
    };
    answer.headers.iter().find(says).map(|(name, _)| name.as_str())
}

/// How the second answer differs from the first in status and body, in words.
pub(crate) fn difference(first: &RawAnswer, second: &RawAnswer) -> Option<String> {
    let mut differences = Vec::new();
    if first.status != second.status {
        differences.push(format!("its status is {} instead of {}", second.status, first.status));
    }
    if first.body != second.body {
        if first.body.len() != second.body.len() {
            let (bytes, whole) = (second.body.len(), first.body.len());
            differences.push(format!("its body has {bytes} bytes instead of {whole}"));
        }
        let both = first.body.iter().zip(&second.body);
        let at = both.take_while(|(one, other)| one == other).count();
        let (was, is) = (excerpt(&first.body, at), excerpt(&second.body, at));
        differences.push(match (was.is_empty(), is.is_empty()) {
            (_, true) => format!("its body ends where `{was}` stood"),
            (true, _) => format!("its body goes on with `{is}`"),
            (false, false) => format!("at byte {at} of its body stands `{is}` instead of `{was}`"),
        });
    }
    (!differences.is_empty()).then(|| differences.join(", "))
}

fn excerpt(body: &[u8], at: usize) -> String {
    let rest = body.get(at..).unwrap_or_default();
    String::from_utf8_lossy(rest.get(..EXCERPT_BYTES.min(rest.len())).unwrap_or_default())
        .into_owned()
}

/// The statuses of these, each once, in words.
pub(crate) fn statuses(exchanges: &[&Exchange]) -> String {
    let statuses: BTreeSet<_> = exchanges.iter().filter_map(|exchange| exchange.status()).collect();
    let texts: Vec<_> = statuses.iter().map(u16::to_string).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}
