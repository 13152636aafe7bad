//! V20: keys that are no keys, and keys that are long.

use super::{Probe, ProbeFuture};
use crate::{
    Defect, DefectClass, Examiner, ProbeInterruption, ProbeLog,
    findings::ProbeFindings,
    judge::{judge_crash, judge_refusal},
    key_pair::{FirstKey, KeyPair},
    profile::RefusalReason,
};

pub(super) const PROBE: Probe = Probe {
    id: "V20",
    name: "bad-keys",
    question: "Are bad keys refused, and long keys told apart?",
    needs: &[],
    operations_max: 14,
    run: |examiner, log| run(examiner, log),
};

/// Lengths that columns and limits have, the longest first: the pair of the longest that is taken shows most.
const LENGTHS: &[usize] = &[8192, 256, 255, 64, 40];
/// Keys of this length are compared in any case: some keep short keys whole and long ones by a digest.
const LENGTH_COMMON: usize = 64;

/// What it means that a bad key was acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadKeyUse {
    /// Nothing bad: some APIs take whatever they are sent.
    Allowed,
    /// A client with a fault is not told.
    Unhelpful,
    /// As a request without a key.
    AsIfMissing,
    /// Which of the keys it was is left to chance.
    Ambiguous,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        for (what, values, acted_on) in bad_keys() {
            let request = examiner.fresh()?;
            let key = examiner.learned().syntax.write(&format!("k-{}", request.marker));
            let request = request.with_keys(values(&key));
            if request.keys.len() > 1 && request.key_header.is_empty() {
                // A body has one place for it.
                continue;
            }
            let exchange = examiner.ask(log, what, &request).await;
            let effects = examiner.effects(log, &request.marker).await?;
            let Some(answer) = exchange.answer() else {
                // Some close the connection on what is no HTTP to them.
                log.note(format!("{what}: {}", exchange.end.describe()));
                continue;
            };
            let reason = match acted_on {
                BadKeyUse::AsIfMissing => RefusalReason::MissingKey,
                BadKeyUse::Allowed | BadKeyUse::Unhelpful | BadKeyUse::Ambiguous => {
                    RefusalReason::BadKey
                }
            };
            let mut defects: Vec<_> = judge_crash(&exchange, what)
                .into_iter()
                .chain(judge_refusal(&exchange, effects))
                .chain(examiner.judge_words(reason, &exchange, what))
                .collect();
            if answer.is_success() {
                log.note(format!("{what} is acted on"));
                defects.extend(judge_use(examiner, what, acted_on, exchange.number));
            }
            findings.seen(defects);
        }
        tell_long_keys_apart(examiner, log, &mut findings).await?;
        Ok(findings.verdict())
    })
}

type KeyValues = fn(&str) -> Vec<Vec<u8>>;

/// Bad keys, made of one that is good as it is written.
fn bad_keys() -> [(&'static str, KeyValues, BadKeyUse); 8] {
    [
        ("an empty key", |_| vec![Vec::new()], BadKeyUse::AsIfMissing),
        ("an empty key in quotes", |_| vec![b"\"\"".to_vec()], BadKeyUse::AsIfMissing),
        (
            "a key with a control character",
            |key| vec![format!("{key}\u{1}x").into_bytes()],
            BadKeyUse::Unhelpful,
        ),
        (
            "a key that is not ASCII",
            |key| vec![format!("schl\u{fc}ssel-{key}").into_bytes()],
            BadKeyUse::Allowed,
        ),
        (
            "a key with a quote that does not end",
            |key| vec![format!("\"{}", key.trim_matches('"')).into_bytes()],
            BadKeyUse::Allowed,
        ),
        (
            "a key with a quote in its middle",
            |key| vec![format!("\"{0}\"{0}\"", key.trim_matches('"')).into_bytes()],
            BadKeyUse::Allowed,
        ),
        (
            "one key in two headers",
            |key| vec![key.as_bytes().to_vec(), key.as_bytes().to_vec()],
            BadKeyUse::Allowed,
        ),
        (
            "two keys in two headers",
            |key| {
                let other = key.replacen("k-", "other-", 1);
                vec![key.as_bytes().to_vec(), other.into_bytes()]
            },
            BadKeyUse::Ambiguous,
        ),
    ]
}

fn judge_use(examiner: &Examiner, what: &str, acted_on: BadKeyUse, number: u32) -> Option<Defect> {
    let is_optional = examiner.examination().declared.key_required == Some(false);
    let (class, sentence, advice) = match acted_on {
        BadKeyUse::Allowed => return None,
        BadKeyUse::AsIfMissing if is_optional => return None,
        BadKeyUse::AsIfMissing | BadKeyUse::Unhelpful => (
            DefectClass::Hygiene,
            format!(
                "{what} was acted on: a client whose keys are broken is never told, \
                 until a retry has its effect twice"
            ),
            "refuse keys that are empty or hold what no header may hold, with 400",
        ),
        BadKeyUse::Ambiguous => (
            DefectClass::Contract,
            format!(
                "{what} were acted on: the client does not know which of them was used, \
                 and a retry with the other one has its effect twice"
            ),
            "refuse requests with more than one key, with 400",
        ),
    };
    Some(Defect { class, sentence, advice, shown_by: vec![number] })
}

async fn tell_long_keys_apart(
    examiner: &Examiner,
    log: &ProbeLog,
    findings: &mut ProbeFindings,
) -> Result<(), ProbeInterruption> {
    let key = examiner.fresh_key();
    if examiner.api().key.uuids {
        let other = if key.ends_with('0') { '1' } else { '0' };
        let second = format!("{}{other}", key.get(..key.len() - 1).unwrap_or_default());
        pair(examiner, "two UUIDs that differ in their last digit", &key, &second)
            .try_out(examiner, log, findings)
            .await?;
        return Ok(());
    }
    let mut longest = None;
    for length in LENGTHS.iter().copied() {
        let is_wanted = longest.is_none() || length == LENGTH_COMMON;
        if !is_wanted {
            continue;
        }
        // Each pair has keys of its own: a server that truncates knows those of the pair before.
        let begin = format!("{length}-{key}-");
        let fill = "x".repeat(length.saturating_sub(begin.len() + 1));
        let alike = format!("two keys of {length} characters that differ in the last one");
        let pair = pair(examiner, &alike, &format!("{begin}{fill}a"), &format!("{begin}{fill}b"));
        if pair.try_out(examiner, log, findings).await? == FirstKey::Accepted && longest.is_none() {
            log.note(format!("keys of {length} characters are taken"));
            longest = Some(length);
        }
    }
    if longest.is_none() {
        findings.unclear("no key of 40 characters or more was taken, so none could be compared");
    }
    Ok(())
}

fn pair(examiner: &Examiner, alike: &str, first: &str, second: &str) -> KeyPair {
    let syntax = examiner.learned().syntax;
    KeyPair {
        alike: alike.to_owned(),
        first: syntax.write(first).into_bytes(),
        second: syntax.write(second).into_bytes(),
    }
}
