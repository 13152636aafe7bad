//! What must be true before anything can be told: C0 to C4.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    Examiner, Exchange, ExchangeEnd, KeySyntax, LearnedConduct, ProbeInterruption, ProbeLog,
    RawAnswer,
    judge::{AnswerLikeness, likeness},
};

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
/// How long nothing is asked for while the count is watched.
const REST: Duration = Duration::from_millis(500);
/// How much is shown of an answer that nobody expected.
const EXCERPT_BYTES: usize = 200;

type ControlLook =
    for<'a> fn(&'a mut Examiner) -> BoxFuture<'a, Result<Control, ProbeInterruption>>;

/// In the order in which one needs another: nothing is known of a count before a request had success.
const CONTROLS: &[(&str, &str, ControlLook)] = &[
    ("C4", SYNTAX, |examiner| Box::pin(syntax(examiner))),
    ("C2", STABLE, |examiner| Box::pin(stable(examiner))),
    ("C3", CONDUCT, |examiner| Box::pin(conduct(examiner))),
    ("C0", DISTINCT, |examiner| Box::pin(distinct(examiner))),
    ("C1", BASELINE, |examiner| Box::pin(baseline(examiner))),
];

/// Looks at all controls, up to the first that is refuted, and lets the examiner know what was learned.
pub(crate) async fn control(
    examiner: &mut Examiner,
    mut tell: impl FnMut(&Control),
) -> Result<Vec<Control>, ProbeInterruption> {
    let mut controls = Vec::new();
    for (id, question, look) in CONTROLS {
        let looked = look(examiner).await;
        let control = match looked {
            // Whoever cannot be asked cannot be believed either.
            Err(ProbeInterruption::Oracle(fault)) => {
                Control::refuted(id, question, fault.to_string())
            }
            other => other?,
        };
        tell(&control);
        let is_refuted = control.refutation().is_some();
        controls.push(control);
        if is_refuted {
            break;
        }
    }
    Ok(controls)
}

/// C4: which way of writing a key is answered with success.
async fn syntax(examiner: &mut Examiner) -> Result<Control, ProbeInterruption> {
    let log = ProbeLog::begin();
    let given = examiner.api().key.syntax;
    let tried =
        given.map_or_else(|| vec![KeySyntax::Bare, KeySyntax::Quoted], |syntax| vec![syntax]);
    let mut refuted = String::new();
    for syntax in tried {
        let learned = LearnedConduct { syntax, ..examiner.learned().clone() };
        examiner.learn(learned);
        let request = examiner.fresh()?;
        let exchange = examiner.ask(&log, "first", &request).await;
        if let Some(answer) = exchange.answer().filter(|answer| answer.is_success()) {
            let written = match syntax {
                KeySyntax::Bare => "keys as they are",
                KeySyntax::Quoted => "keys as quoted strings",
            };
            let text = format!("{written}; success is {}", answer.status);
            return Ok(Control::holds("C4", SYNTAX, text));
        }
        refuted = no_success(examiner, &exchange);
        if !matches!(exchange.status(), Some(400 | 422)) {
            break;
        }
    }
    Ok(Control::refuted("C4", SYNTAX, refuted))
}

/// Why an ordinary request had no success, and what to do.
fn no_success(examiner: &Examiner, exchange: &Exchange) -> String {
    match &exchange.end {
        ExchangeEnd::Answered(answer) => refused(answer),
        ExchangeEnd::Failed { reason } if examiner.address().tls => {
            format!("{reason}: trust its certificate (`--ca`), or give http:// if it speaks no TLS")
        }
        ExchangeEnd::Failed { reason } => format!("{reason}: is it running, and is it http://?"),
        ExchangeEnd::Closed { .. } => format!(
            "the API does not answer an ordinary request ({}): is it http:// or https://?",
            exchange.end.describe()
        ),
        ExchangeEnd::BrokenOff { .. } | ExchangeEnd::Silent { .. } => {
            let waited = examiner.patience();
            format!("the API does not answer an ordinary request within {waited:.0?}")
        }
    }
}

fn refused(answer: &RawAnswer) -> String {
    let said = answer.body.get(..answer.body.len().min(EXCERPT_BYTES)).unwrap_or_default();
    let said = String::from_utf8_lossy(said);
    match answer.status {
        300..=399 => {
            let to = answer.header("location").unwrap_or("another place");
            format!("it redirects ({}) to {to}: give that address instead", answer.status)
        }
        401 | 403 => format!(
            "it wants to know who asks ({}): give credentials (`--credential`)",
            answer.status
        ),
        404 | 405 => {
            format!("nothing takes this request there ({}): look at method and path", answer.status)
        }
        429 => {
            "it limits how often it is asked (429): examine a copy without limits, or ask for fewer"
                .to_owned()
        }
        400 | 422 => format!(
            "an ordinary request is refused with {}: look at its body, and at how its keys have to be written (`--key-syntax`, `--uuid-keys`): {said}",
            answer.status
        ),
        status => format!("an ordinary request is answered with {status}: {said}"),
    }
}

/// Why a request had no success where one before had, and what to do.
fn no_success_now(examiner: &Examiner, exchange: &Exchange) -> String {
    let why = no_success(examiner, exchange);
    if exchange.status() == Some(429) {
        return why;
    }
    format!("ordinary requests succeed at times only, so that nothing can be told by one: {why}")
}

/// C2: the count says the same twice, nothing of what nobody asked for, and one of what was asked for once.
async fn stable(examiner: &mut Examiner) -> Result<Control, ProbeInterruption> {
    let Some(oracle) = examiner.examination().oracle.clone() else {
        return Ok(Control::skipped("C2", STABLE, "nobody counts effects"));
    };
    let refuted = |text| Ok(Control::refuted("C2", STABLE, text));
    let unused = format!("hpx-{:08x}-never", examiner.seed() & 0xffff_ffff);
    for _ in 0..2 {
        let count = oracle.count(&unused).await?;
        if count != 0 {
            return refuted(format!(
                "{} counts {count} effects of an operation that nobody asked for: it must count those of {{marker}} alone",
                oracle.describe()
            ));
        }
        tokio::time::sleep(REST / 5).await;
    }
    let log = ProbeLog::begin();
    let request = examiner.fresh()?;
    let exchange = examiner.ask(&log, "first", &request).await;
    if !exchange.succeeded() {
        return refuted(no_success_now(examiner, &exchange));
    }
    tokio::time::sleep(REST / 2).await;
    let before = oracle.count(&request.marker).await?;
    tokio::time::sleep(REST).await;
    let after = oracle.count(&request.marker).await?;
    if before > after || before > 1 && after > before {
        return refuted(format!(
            "the count went from {before} to {after} while nothing was asked for: it moves by itself, \
             so nothing can be told by it"
        ));
    }
    if after > 1 {
        return refuted(format!(
            "what was asked for once is counted {after} times: \
             the count moves by itself, or counts something else than effects"
        ));
    }
    Ok(if before == after {
        Control::holds("C2", STABLE, format!("it does: {after}"))
    } else {
        // How late is looked at by C3.
        Control::holds("C2", STABLE, format!("effects are counted late: {before}, then {after}"))
    })
}

/// C3: how long an execution takes, what success looks like, and how late it is counted.
async fn conduct(examiner: &mut Examiner) -> Result<Control, ProbeInterruption> {
    let log = ProbeLog::begin();
    let mut latencies = Vec::new();
    let mut statuses = Vec::new();
    let mut count_lag = Duration::ZERO;
    for _ in 0..SAMPLES {
        let request = examiner.fresh()?;
        let exchange = examiner.ask(&log, "sample", &request).await;
        let Some(status) = exchange.status().filter(|_| exchange.succeeded()) else {
            return Ok(Control::refuted("C3", CONDUCT, no_success_now(examiner, &exchange)));
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
    let before = examiner.learned().clone();
    examiner.learn(LearnedConduct { latency, success_status, http2, count_lag, ..before });
    let text = format!(
        "{:.1} ms, {}; counted {}",
        latency.as_secs_f64() * 1e3,
        if http2 { "HTTP/2 spoken" } else { "HTTP/1.1 alone" },
        if count_lag.is_zero() { "at once".to_owned() } else { format!("within {count_lag:.0?}") }
    );
    Ok(Control::holds("C3", CONDUCT, text))
}

/// C0: the same request under two keys happens twice, or no count can tell a duplicate.
async fn distinct(examiner: &mut Examiner) -> Result<Control, ProbeInterruption> {
    let log = ProbeLog::begin();
    let first = examiner.fresh()?;
    let second = examiner.under_another_key(&first)?;
    let exchanges = [
        examiner.ask(&log, "first key", &first).await,
        examiner.ask(&log, "second key", &second).await,
    ];
    let [Some(one), Some(other)] = exchanges.each_ref().map(succeeded) else {
        let failed = exchanges.iter().find(|exchange| !exchange.succeeded());
        let why = failed.map_or_else(String::new, |failed| no_success_now(examiner, failed));
        return Ok(Control::refuted("C0", DISTINCT, why));
    };
    let answers_differ = one.body != other.body;
    examiner.learn(LearnedConduct { answers_differ, ..examiner.learned().clone() });
    let natural = "the operation is idempotent by itself, or the oracle cannot see a second effect: \
                   give an operation in which the same content twice is two effects";
    match examiner.effects(&log, &first.marker).await? {
        Some(2) => return Ok(Control::holds("C0", DISTINCT, "two keys, two effects")),
        Some(count) => {
            let text = format!(
                "two keys with the same content were answered with {} and {}, and {count} effects were counted: {natural}",
                one.status, other.status
            );
            return Ok(Control::refuted("C0", DISTINCT, text));
        }
        None => {}
    }
    Ok(distinct_names(examiner, one, other, natural))
}

fn succeeded(exchange: &Exchange) -> Option<&RawAnswer> {
    exchange.answer().filter(|answer| answer.is_success())
}

/// The same where nobody counts.
fn distinct_names(
    examiner: &Examiner,
    one: &RawAnswer,
    other: &RawAnswer,
    natural: &str,
) -> Control {
    let Some(id) = &examiner.api().id else {
        return match likeness(examiner, one, other) {
            AnswerLikeness::OtherEffect => {
                Control::holds("C0", DISTINCT, "two keys, two answers that differ")
            }
            AnswerLikeness::SameEffect | AnswerLikeness::Unclear => Control::skipped(
                "C0",
                DISTINCT,
                "nobody counts effects, and no answer names its effect",
            ),
        };
    };
    match [one, other].map(|answer| id.text(&answer.body)) {
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
    }
}

/// C1: what happens without a key.
async fn baseline(examiner: &mut Examiner) -> Result<Control, ProbeInterruption> {
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
