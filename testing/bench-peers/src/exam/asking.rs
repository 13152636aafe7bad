//! How questions are put, and how answers are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    error::BenchError,
    stage::Stage,
    wire::{Answer, Client, Wrong},
};

/// What the handler is to do with a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) amount: u32,
    /// How long after the effect it is answered.
    pub(super) wait: Duration,
    /// Whether every execution waits so, not the first alone.
    pub(super) every_time: bool,
    pub(super) status: u16,
}

impl Default for Order {
    fn default() -> Self {
        Self { amount: 1, wait: Duration::ZERO, every_time: false, status: 201 }
    }
}

impl Order {
    /// Answered so long after the effect, the first time.
    pub(super) fn waiting(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }

    pub(super) fn body(self) -> String {
        let Self { amount, wait, every_time, status } = self;
        let wait_ms = wait.as_millis();
        // Written by hand, because the handler looks at how it starts.
        format!(
            "{{\"exam\":1,\"amount\":{amount},\"wait_ms\":{wait_ms},\
             \"every_time\":{every_time},\"status\":{status}}}"
        )
    }
}

/// What a client was told.
pub(super) type Told = Result<Answer, Wrong>;

/// In a few words: the status, and which execution the answer is of.
pub(super) fn seen(told: &Told) -> String {
    match told {
        Ok(answer) => match run(answer) {
            Some(run) => format!("{} of run {run}", answer.status),
            None => answer.status.to_string(),
        },
        Err(_) => "no answer".to_owned(),
    }
}

/// Which execution an answer is of.
pub(super) fn run(answer: &Answer) -> Option<&str> {
    answer.body.strip_prefix("run=")?.split(';').next()
}

/// A success, whoever it is of.
pub(super) fn succeeded(told: &Told) -> Option<&Answer> {
    told.as_ref().ok().filter(|answer| (200..300).contains(&answer.status))
}

/// How often each was seen, such as `1x 201 of run 1, 31x 409`.
pub(super) fn tally(told: &[Told]) -> String {
    let mut counts: BTreeMap<String, (u32, BTreeSet<&str>)> = BTreeMap::new();
    for told in told {
        let status =
            told.as_ref().map_or_else(|_| "no answer".to_owned(), |it| it.status.to_string());
        let (times, runs) = counts.entry(status).or_default();
        *times += 1;
        runs.extend(told.as_ref().ok().and_then(run));
    }
    let counts = counts.iter().map(|(what, (times, runs))| match (runs.len(), runs.first()) {
        (1, Some(run)) => format!("{times}x {what} of run {run}"),
        (0, _) | (_, None) => format!("{times}x {what}"),
        (several, Some(_)) => format!("{times}x {what} of {several} runs"),
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Effects in words.
pub(super) fn counted(effects: u32) -> String {
    if effects == 1 { "1 effect".to_owned() } else { format!("{effects} effects") }
}

/// Waits until the effect was done this often; false if it never is.
pub(super) async fn until_effects(stage: &Stage<'_>, key: &str, times: u32) -> bool {
    const LIMIT: Duration = Duration::from_secs(10);
    const LOOK: Duration = Duration::from_millis(2);
    let began = Instant::now();
    while stage.effects(key) < times {
        if began.elapsed() > LIMIT {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

/// Asks again and again, as a client that wants an answer does, until one is a success or the time
/// is up. Each time on a connection of its own, in the session of `like`.
pub(super) async fn insist(
    stage: &Stage<'_>,
    server: usize,
    like: &Client,
    (key, order): (&str, Order),
    limit: Duration,
) -> Result<Vec<Told>, BenchError> {
    const PAUSE: Duration = Duration::from_millis(250);
    let began = Instant::now();
    let mut told = Vec::new();
    loop {
        let mut client = stage.client(server).await?;
        client.share(like);
        let answer = client.pay(key, &order.body()).await;
        let done = succeeded(&answer).is_some();
        told.push(answer);
        if done || began.elapsed() > limit {
            return Ok(told);
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, body: &str) -> Told {
        Ok(Answer { status, body: body.to_owned() })
    }

    #[test]
    fn answers_are_told_apart_by_their_status_and_their_run() {
        let one = told(201, "run=1;...");
        assert_eq!((seen(&one), seen(&told(409, "busy"))), ("201 of run 1".into(), "409".into()));
        assert_eq!(seen(&Err(Wrong::HungUp)), "no answer");
        let crowd = [one, told(409, ""), told(409, ""), Err(Wrong::Silent)];
        assert_eq!(tally(&crowd), "1x 201 of run 1, 2x 409, 1x no answer");
        assert_eq!(tally(&[told(201, "run=1;"), told(201, "run=2;")]), "2x 201 of 2 runs");
    }

    #[test]
    fn the_handler_recognises_an_order() {
        assert!(Order::default().body().as_bytes().starts_with(crate::effect::INSTRUCTIONS));
    }
}
