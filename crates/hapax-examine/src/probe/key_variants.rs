//! V21: keys that differ in case or in spaces.

use super::{Probe, ProbeFuture};
use crate::{
    Examiner, ProbeLog,
    findings::ProbeFindings,
    key_pair::{FirstKey, KeyPair},
};

pub(super) const PROBE: Probe = Probe {
    id: "V21",
    name: "key-variants",
    question: "Are keys that look alike told apart?",
    needs: &[],
    operations_max: 8,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        if examiner.api().key.uuids {
            log.note("UUIDs in capitals are the same UUIDs, and were not compared");
        } else {
            let key = examiner.fresh_key();
            let syntax = examiner.learned().syntax;
            let pair = KeyPair {
                alike: "two keys that differ in case alone".to_owned(),
                first: syntax.write(&format!("{key}-ab")).into_bytes(),
                second: syntax.write(&format!("{key}-AB")).into_bytes(),
            };
            if pair.try_out(examiner, log, &mut findings).await? == FirstKey::Refused {
                findings.unclear("an ordinary key was refused");
            }
        }
        for (alike, spaced) in SPACED {
            let key = examiner.fresh_key();
            let spaced = spaced.replace("{key}", &key);
            let plain = spaced.replace(' ', "");
            let pair = KeyPair {
                alike: (*alike).to_owned(),
                first: spaced.into_bytes(),
                second: plain.into_bytes(),
            };
            if pair.try_out(examiner, log, &mut findings).await? == FirstKey::Refused {
                log.note(format!("of {alike} the one with spaces is refused"));
            }
        }
        Ok(findings.verdict())
    })
}

/// Around a key without quotes, spaces are no part of it by the rules of HTTP.
const SPACED: &[(&str, &str)] = &[
    ("two keys that differ in a space in their middle", "{key} b"),
    ("two keys in quotes that differ in a space in their middle", "\"{key} b\""),
    ("two keys in quotes that differ in a space at their beginning", "\" {key}\""),
];
