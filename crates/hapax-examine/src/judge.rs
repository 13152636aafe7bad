//! What answers and counts mean, wherever a probe asks for one operation several times.

use std::collections::BTreeSet;

use crate::{Defect, DefectClass, Examiner, Exchange};

/// What is wrong, if one operation was asked for by all of these and had so many effects.
///
/// Sees two effects, two names of effects, an effect that was lost after a success, two successes that differ, and 5xx.
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
                "one key had {many} effects: {} requests were answered with {}",
                exchanges.len(),
                statuses(exchanges)
            ),
            "claim the key in one atomic step, before the effect, and let whoever loses wait or be refused",
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

/// The statuses of these, each once, in words.
pub(crate) fn statuses(exchanges: &[&Exchange]) -> String {
    let statuses: BTreeSet<_> = exchanges.iter().filter_map(|exchange| exchange.status()).collect();
    let texts: Vec<_> = statuses.iter().map(u16::to_string).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}
