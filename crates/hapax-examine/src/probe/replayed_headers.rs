//! V27: what a replay says beside its content.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, ProbeLog, RawAnswer,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, likeness, replay_marker},
};

pub(super) const PROBE: Probe = Probe {
    id: "V27",
    name: "replayed-headers",
    question: "Do replays carry no cookies, stay out of caches, and say that they are replays?",
    needs: &[],
    operations_max: 2,
    run: |examiner, log| run(examiner, log),
};

/// Headers that are about one connection; `Transfer-Encoding` says how this very answer is written.
const HOP_BY_HOP: &[&str] =
    &["keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer", "upgrade"];

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(other) = examiner.succeed(log, "another", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let retry = examiner.ask_until_settled(log, "retry", &first.request).await;
        let Some(replay) = retry.answer().filter(|replay| {
            replay.is_success()
                && likeness(examiner, &first.answer, replay) != AnswerLikeness::OtherEffect
        }) else {
            return Ok(ProbeVerdict::inconclusive(
                "a retry was not replayed, so there were no headers to look at",
            ));
        };
        let mut findings = ProbeFindings::default();
        let mut defects = Vec::new();
        let mut add = |class, sentence, advice| {
            let shown_by = vec![first.exchange.number, retry.number];
            defects.push(Defect { class, sentence, advice, shown_by });
        };
        if let Some(cookie) = stored_cookie(&first.answer, replay, &other.answer) {
            let sentence = format!(
                "a replay sets the cookie that the first answer set ({cookie}): \
                 whoever retries gets a session that may be somebody else's, or over"
            );
            add(DefectClass::Contract, sentence, "store no `Set-Cookie` with an answer");
        }
        for header in stored_hop_by_hop(&first.answer, replay) {
            let sentence = format!(
                "a replay carries `{header}`, which was about another connection: \
                 clients and proxies take it for their own"
            );
            let advice = "store no header that is about one connection: `Connection`, what it names, \
                          `Keep-Alive`, `Transfer-Encoding` and the like";
            add(DefectClass::Contract, sentence, advice);
        }
        if let Some(kept) = kept_by_caches(replay) {
            let sentence = format!(
                "a replay may be kept by caches (`{kept}`): somebody else can be answered with it"
            );
            let advice = "send `Cache-Control: no-store` with what is stored under a key";
            add(DefectClass::Hygiene, sentence, advice);
        }
        if replay_marker(replay).is_none() {
            let sentence = "nothing in a replay says that it is one: \
                            clients and logs cannot tell it from a second effect";
            let advice = "say so with a header: `Idempotent-Replayed: true`";
            add(DefectClass::Hygiene, sentence.to_owned(), advice);
        }
        findings.seen(defects);
        Ok(findings.verdict())
    })
}

/// The header by which caches may keep an answer. An answer to POST that has none of them is not kept.
fn kept_by_caches(replay: &RawAnswer) -> Option<String> {
    let control = replay.header("cache-control").unwrap_or_default().to_ascii_lowercase();
    let says = |word: &str| control.split(',').any(|part| part.trim() == word);
    if says("no-store") || says("private") || says("no-cache") {
        return None;
    }
    let lives = |part: &&str| {
        let seconds = ["max-age=", "s-maxage="].iter().find_map(|name| part.strip_prefix(name));
        seconds
            .is_some_and(|seconds| seconds.trim_matches('"').parse().is_ok_and(|age: u64| age > 0))
    };
    let control = control.split(',').map(str::trim).find(|part| *part == "public" || lives(part));
    let control = control.map(|part| format!("Cache-Control: {part}"));
    control.or_else(|| replay.header("expires").map(|when| format!("Expires: {when}")))
}

/// A cookie that the replay has from the first answer, and that not every answer has.
fn stored_cookie(first: &RawAnswer, replay: &RawAnswer, other: &RawAnswer) -> Option<String> {
    let cookies = |answer: &RawAnswer| -> Vec<String> {
        let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
        cookies.map(|(_, value)| value.clone()).collect()
    };
    let (was, constant) = (cookies(first), cookies(other));
    let stored =
        cookies(replay).into_iter().find(|one| was.contains(one) && !constant.contains(one));
    // What it is set to is a secret.
    stored.map(|cookie| cookie.split('=').next().unwrap_or_default().to_owned())
}

/// Headers about one connection that the replay has, and an answer that was really made has not.
fn stored_hop_by_hop(first: &RawAnswer, replay: &RawAnswer) -> Vec<String> {
    let connection = replay.header("connection").unwrap_or_default().to_ascii_lowercase();
    let named = connection.split(',').map(str::trim);
    let named = named.filter(|name| !matches!(*name, "close" | "keep-alive" | ""));
    let mut names: Vec<_> = HOP_BY_HOP.iter().copied().chain(named).collect();
    names.retain(|name| replay.header(name).is_some() && first.header(name).is_none());
    let mut names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    let has = |name| replay.header(name).is_some();
    if has("transfer-encoding") && has("content-length") {
        names.push("transfer-encoding".to_owned());
    }
    names
}
