//! V26: somebody retries shortly before a key is forgotten, and somebody else shortly after.

use std::time::Duration;

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    AwaitedKey, Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeInterruption, ProbeLog,
    RawAnswer, judge::judge_duplicates,
};

pub(super) const PROBE: Probe = Probe {
    id: "V26",
    name: "expiry",
    question: "Is a key known for as long as is said, and no surprise afterwards?",
    needs: &[ProbeNeed::Retention],
    // For each round, one key that is asked before and one that is asked after.
    operations_max: 2 * ROUNDS,
    run: |examiner, log| run(examiner, log),
};

/// The longest retention that is waited for in place.
const WAITED_FOR_MAX: Duration = Duration::from_secs(60);
/// How often it is tried to ask in time.
const ROUNDS: u32 = 2;

/// When a key is asked again whose time is about to come.
#[derive(Debug, Clone, Copy)]
struct ExpiryWindow {
    retention: Duration,
    /// Before and after the end by this much.
    margin: Duration,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let examination = examiner.examination();
        let Some(retention) = examination.declared.retention else {
            return Ok(ProbeVerdict::inconclusive("nobody said how long keys are kept (`--ttl`)"));
        };
        if let Some(awaited) = examination.earlier.awaited.first() {
            return resumed(examiner, log, awaited).await;
        }
        if retention > WAITED_FOR_MAX {
            return begun(examiner, log, retention).await;
        }
        for round in 1..=ROUNDS {
            // Slow machines need more of it.
            let margin = (retention * round / 8).max(Duration::from_millis(100));
            let window = ExpiryWindow { retention, margin: margin.min(retention / 2) };
            if let Some(verdict) = waited_for(examiner, log, window).await? {
                return Ok(verdict);
            }
        }
        Ok(ProbeVerdict::inconclusive(format!(
            "keys are kept for {}, and no retry was answered before that was over: a longer retention would help",
            words(retention)
        )))
    })
}

/// Asks in place; nothing if the machine was too slow to ask in time.
async fn waited_for(
    examiner: &Examiner,
    log: &ProbeLog,
    window: ExpiryWindow,
) -> Result<Option<ProbeVerdict>, ProbeInterruption> {
    let ExpiryWindow { retention, margin } = window;
    let (early, late) = (examiner.fresh()?, examiner.fresh()?);
    let first = examiner.ask(log, "first", &early).await;
    let other = examiner.ask(log, "first of another key", &late).await;
    let (Some(original), true) = (first.answer(), first.succeeded() && other.succeeded()) else {
        return Ok(Some(ProbeVerdict::inconclusive("the first requests had no success")));
    };
    let rest = |until: Duration| until.saturating_sub(log.elapsed());
    examiner.rest_for(rest(first.began + retention.saturating_sub(margin))).await?;
    let retry = examiner.ask(log, "retry before the end", &early).await;
    // It may have been forgotten as it should be.
    if retry.ended >= first.began + retention || !is_told(&retry) {
        return Ok(None);
    }
    let defects = forgotten(examiner, log, &early, original, &[&first, &retry], retention).await?;
    if !defects.is_empty() {
        return Ok(Some(ProbeVerdict::Fail { trials: 1, defects }));
    }
    examiner.rest_for(rest(other.ended + retention + margin)).await?;
    let defects = afterwards(examiner, log, &late, other.answer()).await?;
    Ok(Some(ProbeVerdict::of(1, defects)))
}

/// Asks, and has it remembered for a later run.
async fn begun(
    examiner: &Examiner,
    log: &ProbeLog,
    retention: Duration,
) -> Result<ProbeVerdict, ProbeInterruption> {
    let request = examiner.fresh()?;
    let asked = examiner.now();
    let first = examiner.ask(log, "first", &request).await;
    let Some(answer) = first.answer().filter(|answer| answer.is_success()) else {
        return Ok(ProbeVerdict::inconclusive("the first request had no success"));
    };
    examiner.remember(AwaitedKey::new(&request, answer, asked, retention));
    Ok(come_back(retention, Duration::ZERO))
}

/// Asks what an earlier run has asked, if its time has come.
async fn resumed(
    examiner: &Examiner,
    log: &ProbeLog,
    awaited: &AwaitedKey,
) -> Result<ProbeVerdict, ProbeInterruption> {
    let (retention, age) = (awaited.retention(), awaited.age(examiner.now()));
    if age < opening(retention) {
        examiner.remember(awaited.clone());
        return Ok(come_back(retention, age));
    }
    let request = awaited.request(examiner.api());
    let original = RawAnswer {
        status: awaited.status,
        headers: Vec::new(),
        body: awaited.answer.clone().into(),
    };
    log.note(format!("the key of {} was first asked {} ago", request.marker, words(age)));
    if age < closing(retention) {
        let retry = examiner.ask(log, "retry before the end", &request).await;
        if !is_told(&retry) {
            examiner.remember(awaited.clone());
            return Ok(come_back(retention, age));
        }
        if awaited.age(examiner.now()) < retention {
            let defects =
                forgotten(examiner, log, &request, &original, &[&retry], retention).await?;
            return Ok(ProbeVerdict::of(1, defects));
        }
    }
    let defects = afterwards(examiner, log, &request, Some(&original)).await?;
    if !defects.is_empty() {
        return Ok(ProbeVerdict::Fail { trials: 1, defects });
    }
    Ok(ProbeVerdict::inconclusive(format!(
        "this came {} after the key was first asked, too late to see whether it was known until its end, but not \
         surprised by what followed: a new run, resumed within {} to {} of it, would tell",
        words(age),
        words(opening(retention)),
        words(closing(retention))
    )))
}

/// What is wrong with a retry that came before the end of a key.
async fn forgotten(
    examiner: &Examiner,
    log: &ProbeLog,
    request: &ExamRequest,
    original: &RawAnswer,
    asked: &[&Exchange],
    retention: Duration,
) -> Result<Vec<Defect>, ProbeInterruption> {
    let effects = examiner.effects(log, &request.marker).await?;
    let shown_by: Vec<_> = asked.iter().map(|exchange| exchange.number).collect();
    let mut defects = judge_duplicates(examiner, asked, effects);
    for defect in &mut defects {
        defect.sentence = format!(
            "keys are said to be known for {}, and one was not: {}",
            words(retention),
            defect.sentence
        );
        defect.advice =
            "keep keys for as long as is said, counted from when they were last written";
    }
    let Some(retry) = asked.last().filter(|_| defects.is_empty()) else { return Ok(defects) };
    let is_replay = retry.answer().is_some_and(|answer| is_replay(original, answer));
    if !is_replay {
        defects.push(Defect {
            class: DefectClass::Contract,
            sentence: format!(
                "keys are said to be known for {}, and before that was over a retry of what was answered with {} \
                 heard something else: it was {}",
                words(retention),
                original.status,
                retry.end.describe()
            ),
            advice: "keep answers for as long as is said",
            shown_by,
        });
    }
    Ok(defects)
}

/// What is wrong with a retry that came after the end of a key: nothing, unless the server fails.
async fn afterwards(
    examiner: &Examiner,
    log: &ProbeLog,
    request: &ExamRequest,
    original: Option<&RawAnswer>,
) -> Result<Vec<Defect>, ProbeInterruption> {
    let retry = examiner.ask_until_settled(log, "retry after the end", request).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let is_replay = retry.answer().zip(original).is_some_and(|(now, then)| is_replay(then, now));
    let is_new = match effects {
        Some(effects) => effects > 1,
        None => retry.succeeded() && !is_replay,
    };
    log.note(match (retry.status(), is_new, is_replay) {
        (_, true, _) => "after its end, a key has a new effect".to_owned(),
        (_, false, true) => "after its end, a key is still replayed".to_owned(),
        (Some(status), false, false) => format!("after its end, a key is answered with {status}"),
        (None, false, false) => format!("after its end, a retry is {}", retry.end.describe()),
    });
    if retry.status().is_none_or(|status| status < 500) {
        return Ok(Vec::new());
    }
    Ok(vec![Defect {
        class: DefectClass::Contract,
        sentence: format!(
            "after the time for which keys are kept, a retry made the server fail: it was {}",
            retry.end.describe()
        ),
        advice: "treat a key that was forgotten as a new one, or refuse it (410)",
        shown_by: vec![retry.number],
    }])
}

/// Whether an answer tells anything of its key.
fn is_told(exchange: &Exchange) -> bool {
    exchange.status().is_some_and(|status| !matches!(status, 429 | 502..=504))
}

/// Whether it says the same, as text: that is what is kept between two runs.
fn is_replay(original: &RawAnswer, answer: &RawAnswer) -> bool {
    original.status == answer.status
        && String::from_utf8_lossy(&original.body) == String::from_utf8_lossy(&answer.body)
}

/// From when on a key that is still known was known for as long as was said, nearly.
fn opening(retention: Duration) -> Duration {
    retention / 10 * 9
}

/// Until when it must be known, whatever the clocks of two runs say.
fn closing(retention: Duration) -> Duration {
    retention - (retention / 100).max(Duration::from_secs(1))
}

fn come_back(retention: Duration, age: Duration) -> ProbeVerdict {
    let left = |until: Duration| words(until.saturating_sub(age));
    ProbeVerdict::inconclusive(format!(
        "keys are kept for {}: come back in {}, and before {} are over, with `--resume`",
        words(retention),
        left(opening(retention)),
        left(closing(retention))
    ))
}

/// A time as people say it, in the two largest units that are not nothing.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let said: Vec<_> = units.iter().skip_while(|(number, _)| *number == 0).take(2).collect();
    let texts: Vec<_> = said
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if texts.is_empty() { format!("{} ms", duration.as_millis()) } else { texts.join(" ") }
}
