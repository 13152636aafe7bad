//! Whoever watches a call hears of every attempt.

use std::sync::{Arc, Mutex};

use hapax_core::retry::{AttemptResult, Backoff, Jitter, Schedule};
use hapax_tower::client::{Pursuit, PursuitEvent, RetryOptions, Watch};

use super::script::{Destination, Reply, post, said};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Watch for Log {
    fn saw(&self, event: PursuitEvent<'_>) {
        let line = match event {
            PursuitEvent::Begun { attempt, limit } => format!("{attempt} begins, {limit:?}"),
            PursuitEvent::Ended {
                attempt,
                result: AttemptResult::Unanswered,
                error: Some(error),
                ..
            } => {
                format!("{attempt} is not answered: {error}")
            }
            PursuitEvent::Ended { attempt, status, .. } => format!("{attempt} ends, {status:?}"),
            PursuitEvent::Pausing { attempt, pause } => format!("{pause:?} after {attempt}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_and_every_pause_is_told() {
    let millis = std::time::Duration::from_millis;
    let backoff = Backoff { jitter: Jitter::None, base: millis(100), cap: millis(1_000) };
    let log = Arc::new(Log::default());
    let pursuit = Pursuit {
        schedule: Some(Schedule::new(backoff, 3).unwrap()),
        watch: Some(Arc::clone(&log) as Arc<dyn Watch>),
        ..Pursuit::default()
    };
    let mut request = post();
    request.extensions_mut().insert(pursuit);
    let destination = Destination::new(|nth| if nth == 1 { Reply::Reset } else { said(503) });
    let answered = destination.ask(RetryOptions::default(), request).await;
    assert_eq!(answered.unwrap().status(), 503);
    let expected = [
        "1 begins, 10s",
        "1 is not answered: connection reset",
        "100ms after 1",
        "2 begins, 10s",
        "2 ends, Some(503)",
        "200ms after 2",
        "3 begins, 10s",
        "3 ends, Some(503)",
    ];
    assert_eq!(*log.0.lock().unwrap(), expected);
}
