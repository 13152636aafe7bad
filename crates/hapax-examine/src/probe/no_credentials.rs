//! V09: somebody without credentials comes with a used key.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    CredentialHeaders, Defect, DefectClass, Examiner, Exchange, ProbeLog, RawAnswer,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, judge_crash, judge_duplicates, likeness, untold},
};

pub(super) const PROBE: Probe = Probe {
    id: "V09",
    name: "no-credentials",
    question: "Is a key without credentials refused, and nothing told by it?",
    needs: &[ProbeNeed::Credentials],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let mut findings = ProbeFindings::default();
        let cases = [
            ("no credentials", Vec::new()),
            ("invalid credentials", invalid(&examiner.api().credentials.main)),
        ];
        for (who, credentials) in cases {
            let asked = first.request.asked_by(&credentials);
            let second = examiner.ask(log, &format!("a used key with {who}"), &asked).await;
            let effects = examiner.effects(log, &first.request.marker).await?;
            let (Some(answer), None) = (second.answer(), untold(&second)) else {
                findings.unclear(untold(&second).unwrap_or_default());
                continue;
            };
            let mut defects = judge_duplicates(examiner, &[&first.exchange, &second], effects);
            defects.extend(judge_crash(&second, &format!("a used key with {who}")));
            if defects.is_empty() {
                let told = told(examiner, &first.answer, answer);
                defects.extend(told.map(|what| disclosed(who, what, &first.exchange, &second)));
            }
            if !matches!(answer.status, 401 | 403) {
                log.note(format!("{who} are answered with {}, not with 401 or 403", answer.status));
            }
            findings.seen(defects);
        }
        Ok(findings.verdict())
    })
}

/// Credentials that look like these and are nobody's.
fn invalid(credentials: &[(String, String)]) -> CredentialHeaders {
    let other = |value: &str| match value.split_once(' ') {
        // `nobody:nothing`: it can be read.
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("basic") => {
            format!("{scheme} bm9ib2R5Om5vdGhpbmc=")
        }
        Some((scheme, _)) => format!("{scheme} nobodys-credentials"),
        None => "nobodys-credentials".to_owned(),
    };
    credentials.iter().map(|(name, value)| (name.clone(), other(value))).collect()
}

/// What the answer tells that it must not.
fn told(examiner: &Examiner, first: &RawAnswer, answer: &RawAnswer) -> Option<&'static str> {
    match likeness(examiner, first, answer) {
        AnswerLikeness::SameEffect => Some("what its owner had been answered"),
        AnswerLikeness::OtherEffect | AnswerLikeness::Unclear => {
            answer.is_success().then_some("success")
        }
    }
}

fn disclosed(who: &str, what: &str, first: &Exchange, second: &Exchange) -> Defect {
    Defect {
        class: DefectClass::Safety,
        sentence: format!(
            "a request with {who} and a used key was answered with {} and {what}: \
             whoever learns a key learns what its owner was answered",
            second.status().unwrap_or_default()
        ),
        advice: "ask who it is before anything is looked up by its key",
        shown_by: vec![first.number, second.number],
    }
}
