//! What must be true before anything can be told: C0 to C4.

use std::time::Duration;

use tokio::time::Instant;

use crate::{ExamRequest, Examiner, Exchange, Interruption, KeySyntax, LearnedConduct, ProbeLog};

/// What one control found.
#[derive(Debug, Clone)]
pub struct Control {
    /// `C0`.
    pub id: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// What it found.
    pub verdict: ControlVerdict,
}

/// Whether a control holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlVerdict {
    /// It does; what was learned, in words.
    Holds(String),
    /// It does not: nothing can be graded. Why, in a sentence that says what to do.
    Refuted(String),
    /// There was nothing to look at: why.
    Skipped(String),
}

impl Control {
    fn holds(id: &'static str, question: &'static str, text: impl Into<String>) -> Self {
        Self { id, question, verdict: ControlVerdict::Holds(text.into()) }
    }

    fn refuted(id: &'static str, question: &'static str, text: impl Into<String>) -> Self {
        Self { id, question, verdict: ControlVerdict::Refuted(text.into()) }
    }

    fn skipped(id: &'static str, question: &'static str, text: impl Into<String>) -> Self {
        Self { id, question, verdict: ControlVerdict::Skipped(text.into()) }
    }

    /// Why nothing can be graded, if this control says so.
    pub fn refutation(&self) -> Option<&str> {
        match &self.verdict {
            ControlVerdict::Refuted(why) => Some(why),
            ControlVerdict::Holds(_) | ControlVerdict::Skipped(_) => None,
        }
    }
}

const SYNTAX: &str = "How does it want its keys, and does it answer with success?";
const BASELINE: &str = "What does it do without a key?";
const DISTINCT: &str = "Do two keys have two effects?";
const STABLE: &str = "Does the count stay where it is when nothing happens?";
const CONDUCT: &str = "How long does it take, and when is an effect counted?";

/// Operations that all of them begin at most: two for the syntax, one for the count, the samples, two keys, and one
/// without a key.
pub(crate) const OPERATIONS_MAX: u32 = 2 + 1 + SAMPLES + 2 + 1;
/// Operations that are asked for to learn how long they take.
const SAMPLES: u32 = 5;
/// How late an effect may be counted.
const COUNT_LAG_MAX: Duration = Duration::from_secs(5);

/// Looks at all controls, up to the first that is refuted, and lets the examiner know what was learned.
pub(crate) async fn control(
    examiner: &mut Examiner,
    mut tell: impl FnMut(&Control),
) -> Result<Vec<Control>, Interruption> {
    let mut controls = Vec::new();
    let mut add = |control: Control, controls: &mut Vec<Control>| {
        tell(&control);
        let is_refuted = control.refutation().is_some();
        controls.push(control);
        is_refuted
    };
    if add(syntax(examiner).await?, &mut controls) || add(stable(examiner).await?, &mut controls) {
        return Ok(controls);
    }
    if add(conduct(examiner).await?, &mut controls) || add(distinct(examiner).await?, &mut controls)
    {
        return Ok(controls);
    }
    let baseline = baseline(examiner).await?;
    add(baseline, &mut controls);
    Ok(controls)
}

/// C4: which way of writing a key is answered with success.
async fn syntax(examiner: &mut Examiner) -> Result<Control, Interruption> {
    let log = ProbeLog::begin();
    let given = examiner.api().key.syntax;
    let tried =
        given.map_or_else(|| vec![KeySyntax::Bare, KeySyntax::Quoted], |syntax| vec![syntax]);
    let mut last = None;
    for syntax in tried {
        let learned = LearnedConduct { syntax, ..examiner.learned().clone() };
        examiner.learn(learned);
        let request = examiner.fresh()?;
        let exchange = examiner.ask(&log, "first", &request).await;
        if exchange.succeeded() {
            let written = match syntax {
                KeySyntax::Bare => "keys as they are",
                KeySyntax::Quoted => "keys as quoted strings",
            };
            let text = format!("{written}; success is {}", exchange.status().unwrap_or_default());
            return Ok(Control::holds("C4", SYNTAX, text));
        }
        let is_about_key = exchange.status() == Some(400);
        last = Some(exchange);
        if !is_about_key {
            break;
        }
    }
    Ok(Control::refuted("C4", SYNTAX, last.as_ref().map_or_else(String::new, no_success)))
}

/// Why an ordinary request had no success, and what to do.
fn no_success(exchange: &Exchange) -> String {
    let Some(answer) = exchange.answer() else {
        return format!("the API was not reached or did not answer: {}", exchange.end.describe());
    };
    let said =
        String::from_utf8_lossy(answer.body.get(..answer.body.len().min(200)).unwrap_or_default());
    match answer.status {
        300..=399 => {
            let to = answer.header("location").unwrap_or("another place");
            format!("it redirects ({}) to {to}: give that address instead", answer.status)
        }
        401 | 403 => format!("it wants to know who asks ({}): give credentials", answer.status),
        404 | 405 => {
            format!("nothing takes this request there ({}): look at method and path", answer.status)
        }
        429 => {
            "it limits how often it is asked (429): examine a copy without limits, or ask for fewer"
                .to_owned()
        }
        status => format!("an ordinary request is answered with {status}: {said}"),
    }
}

/// C2: the count says the same twice, and nothing of an operation that nobody asked for.
async fn stable(examiner: &mut Examiner) -> Result<Control, Interruption> {
    let Some(oracle) = examiner.examination().oracle.clone() else {
        return Ok(Control::skipped("C2", STABLE, "nobody counts effects"));
    };
    let unused = format!("hpx-{:08x}-never", examiner.seed() & 0xffff_ffff);
    for _ in 0..2 {
        let count = oracle.count(&unused).await?;
        if count != 0 {
            let text = format!(
                "{} counts {count} effects of an operation that nobody asked for: it must count those of {{marker}} alone",
                oracle.describe()
            );
            return Ok(Control::refuted("C2", STABLE, text));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = ProbeLog::begin();
    let request = examiner.fresh()?;
    if !examiner.ask(&log, "first", &request).await.succeeded() {
        return Ok(Control::refuted("C2", STABLE, "an ordinary request succeeds at times only"));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = oracle.count(&request.marker).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = oracle.count(&request.marker).await?;
    Ok(if before == after {
        Control::holds("C2", STABLE, format!("it does: {after}"))
    } else if before > after {
        let text = format!("the count went from {before} to {after} while nothing was asked for");
        Control::refuted("C2", STABLE, text)
    } else {
        // Late is looked at by C3.
        Control::holds("C2", STABLE, format!("effects are counted late: {before}, then {after}"))
    })
}

/// C3: how long an execution takes, what success looks like, and how late it is counted.
async fn conduct(examiner: &mut Examiner) -> Result<Control, Interruption> {
    let log = ProbeLog::begin();
    let mut latencies = Vec::new();
    let mut statuses = Vec::new();
    let mut count_lag = Duration::ZERO;
    for _ in 0..SAMPLES {
        let request = examiner.fresh()?;
        let exchange = examiner.ask(&log, "sample", &request).await;
        let Some(status) = exchange.status().filter(|_| exchange.succeeded()) else {
            let text =
                format!("ordinary requests succeed at times only: {}", no_success(&exchange));
            return Ok(Control::refuted("C3", CONDUCT, text));
        };
        statuses.push(status);
        latencies.push(exchange.ended.saturating_sub(exchange.began));
        let asked = Instant::now();
        while let Some(0) = examiner.effects_now(&request.marker).await? {
            if asked.elapsed() > COUNT_LAG_MAX {
                let text = format!(
                    "a request was answered with {status}, and no effect was counted within {} s: \
                     the count looks at something else, or does not know {{marker}}",
                    COUNT_LAG_MAX.as_secs()
                );
                return Ok(Control::refuted("C3", CONDUCT, text));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            count_lag = count_lag.max(asked.elapsed());
        }
    }
    latencies.sort();
    let latency = latencies.get(latencies.len() / 2).copied().unwrap_or_default();
    let success_status = statuses.first().copied().unwrap_or(200);
    let http2 = examiner.wire().speaks_http2(examiner.address()).await;
    let syntax = examiner.learned().syntax;
    examiner.learn(LearnedConduct { syntax, latency, success_status, http2, count_lag });
    let text = format!(
        "{:.1} ms, {}; counted {}",
        latency.as_secs_f64() * 1e3,
        if http2 { "HTTP/2 spoken" } else { "HTTP/1.1 alone" },
        if count_lag.is_zero() { "at once".to_owned() } else { format!("within {count_lag:.0?}") }
    );
    Ok(Control::holds("C3", CONDUCT, text))
}

/// C0: the same request under two keys happens twice, or no count can tell a duplicate.
async fn distinct(examiner: &mut Examiner) -> Result<Control, Interruption> {
    let log = ProbeLog::begin();
    let first = examiner.fresh()?;
    let second = ExamRequest { keys: examiner.fresh()?.keys, ..first.clone() };
    let answers = [
        examiner.ask(&log, "first key", &first).await,
        examiner.ask(&log, "second key", &second).await,
    ];
    let natural = "the operation is idempotent by itself, or the oracle cannot see a second effect: \
                   give an operation in which the same content twice is two effects";
    match examiner.effects(&log, &first.marker).await? {
        Some(2) => return Ok(Control::holds("C0", DISTINCT, "two keys, two effects")),
        Some(count) => {
            let statuses = answers.each_ref().map(|one| one.status().unwrap_or_default());
            let text = format!(
                "two keys with the same content were answered with {} and {}, and {count} effects were counted: {natural}",
                statuses[0], statuses[1]
            );
            return Ok(Control::refuted("C0", DISTINCT, text));
        }
        None => {}
    }
    let Some(id) = &examiner.api().id else {
        return Ok(Control::skipped(
            "C0",
            DISTINCT,
            "nobody counts effects, and no answer names its effect",
        ));
    };
    let names = answers.each_ref().map(|one| one.answer().and_then(|answer| id.text(&answer.body)));
    Ok(match names {
        [Some(first), Some(second)] if first != second => {
            Control::holds("C0", DISTINCT, "two keys, two names of effects")
        }
        [Some(_), Some(_)] => Control::refuted(
            "C0",
            DISTINCT,
            format!("two keys were answered with one name: {natural}"),
        ),
        _ => {
            Control::refuted("C0", DISTINCT, format!("no answer has anything at `{}`", id.as_str()))
        }
    })
}

/// C1: what happens without a key.
async fn baseline(examiner: &mut Examiner) -> Result<Control, Interruption> {
    let log = ProbeLog::begin();
    let request = examiner.fresh()?.without_key();
    let first = examiner.ask(&log, "without a key", &request).await;
    Ok(match first.answer() {
        Some(answer) if answer.is_refusal() => {
            Control::holds("C1", BASELINE, format!("it is refused with {}", answer.status))
        }
        Some(answer) if answer.is_success() => {
            examiner.ask(&log, "without a key again", &request).await;
            let text = match examiner.effects(&log, &request.marker).await? {
                Some(count) => format!("two requests without a key have {count} effects"),
                None => "it is acted on".to_owned(),
            };
            Control::holds("C1", BASELINE, text)
        }
        Some(_) | None => Control::holds("C1", BASELINE, first.end.describe()),
    })
}
