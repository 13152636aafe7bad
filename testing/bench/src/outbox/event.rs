//! What one event is, and whether each came once and in the order of its key.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Events of one key, in a log that was filled before.
pub(super) const PER_KEY: u64 = 10;
/// Bytes of a payload: the number of the key, of the event within it, and nothing of interest.
const PAYLOAD_BYTES: usize = 200;
const DIGITS: usize = 10;

/// The same payload in SQL, for numbers in `key` and `turn`.
pub(super) const PAYLOAD_SQL: &str =
    "convert_to(lpad(key::text, 10, '0') || lpad(turn::text, 10, '0') || repeat('x', 180), 'UTF8')";

/// What an event says.
pub(super) fn payload(key: u64, turn: u64) -> Vec<u8> {
    let mut payload = format!("{key:010}{turn:010}").into_bytes();
    payload.resize(PAYLOAD_BYTES, b'x');
    payload
}

/// What came, and when.
#[derive(Debug)]
pub(super) struct ArrivalChecker {
    began: Instant,
    state: Mutex<CheckerState>,
}

#[derive(Debug, Default)]
struct CheckerState {
    /// For each key, how many of its events came.
    turns: Vec<u64>,
    taken: u64,
    /// For each event, when it came: nanoseconds since the beginning, where that is of interest.
    times: Option<Vec<u64>>,
    wrong: Option<String>,
}

impl ArrivalChecker {
    /// Knows this many keys.
    pub(super) fn new(keys: u64) -> Self {
        let state = CheckerState { turns: vec![0; index(keys)], ..CheckerState::default() };
        Self { began: Instant::now(), state: Mutex::new(state) }
    }

    /// The same, and remembers when each event came; for keys with one event.
    pub(super) fn timed(keys: u64, began: Instant) -> Self {
        let state = CheckerState {
            turns: vec![0; index(keys)],
            times: Some(vec![0; index(keys)]),
            ..CheckerState::default()
        };
        Self { began, state: Mutex::new(state) }
    }

    /// Takes events in, in the order they were sent in.
    pub(super) fn take<'a>(&self, payloads: impl IntoIterator<Item = &'a [u8]>) {
        let at = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state();
        for payload in payloads {
            state.take(payload, at);
        }
    }

    /// How many events came.
    pub(super) fn taken(&self) -> u64 {
        self.state().taken
    }

    /// When each event came, in nanoseconds since the beginning; zero for what did not.
    pub(super) fn times(&self) -> Vec<u64> {
        self.state().times.clone().unwrap_or_default()
    }

    /// What is wrong if these many were sent, each once.
    pub(super) fn verdict(&self, sent: u64) -> Option<String> {
        let state = self.state();
        let lost = (state.taken != sent).then(|| format!("{sent} were sent, {} came", state.taken));
        state.wrong.clone().or(lost)
    }

    fn state(&self) -> MutexGuard<'_, CheckerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckerState {
    fn take(&mut self, payload: &[u8], at: u64) {
        self.taken += 1;
        let number = |range| {
            let digits = std::str::from_utf8(payload.get::<std::ops::Range<usize>>(range)?);
            digits.ok()?.parse::<u64>().ok()
        };
        let (Some(key), Some(turn)) = (number(0..DIGITS), number(DIGITS..2 * DIGITS)) else {
            self.wrong.get_or_insert_with(|| "a payload was not what was sent".to_owned());
            return;
        };
        let Some(expected) = self.turns.get_mut(index(key)) else {
            self.wrong.get_or_insert_with(|| format!("nobody sent key {key}"));
            return;
        };
        if *expected != turn {
            let sentence = format!("of key {key}, event {turn} came where {expected} was next");
            self.wrong.get_or_insert(sentence);
        }
        *expected = turn + 1;
        if let Some(time) = self.times.as_mut().and_then(|times| times.get_mut(index(key))) {
            *time = at;
        }
    }
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(events: &[(u64, u64)]) -> Option<String> {
        let checker = ArrivalChecker::new(2);
        let payloads: Vec<_> = events.iter().map(|(key, turn)| payload(*key, *turn)).collect();
        checker.take(payloads.iter().map(Vec::as_slice));
        checker.verdict(4)
    }

    #[test]
    fn each_event_once_and_in_order_is_right() {
        assert_eq!(verdict(&[(0, 0), (1, 0), (1, 1), (0, 1)]), None);
    }

    #[test]
    fn what_is_lost_doubled_or_swapped_is_wrong() {
        for wrong in [
            &[(0, 0), (1, 0), (1, 1)][..],
            &[(0, 0), (0, 0), (1, 0), (1, 1)],
            &[(0, 1), (0, 0), (1, 0), (1, 1)],
            &[(0, 0), (0, 1), (1, 0), (2, 0)],
        ] {
            assert!(verdict(wrong).is_some(), "{wrong:?}");
        }
    }
}
