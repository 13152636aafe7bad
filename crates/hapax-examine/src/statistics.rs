//! How much trials are worth, and how close duplicates came.

use std::time::Duration;

/// Duplicates whose last bytes left within this time are taken to have come at once.
pub const AT_ONCE: Duration = Duration::from_micros(200);

/// How close the duplicates of races came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RaceOverlap {
    /// How many races there were.
    pub races: usize,
    /// In how many of them all last bytes left within [`AT_ONCE`].
    pub at_once: usize,
    /// Half of the races were no wider apart.
    pub median: Duration,
    /// 95 of 100 were no wider apart.
    pub p95: Duration,
}

impl RaceOverlap {
    /// Of races whose last bytes left within these times; nothing where there was no race.
    pub fn of(spreads: &[Duration]) -> Option<Self> {
        let mut sorted = spreads.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied()
        };
        Some(Self {
            races: sorted.len(),
            at_once: sorted.iter().filter(|spread| **spread <= AT_ONCE).count(),
            median: at(50)?,
            p95: at(95)?,
        })
    }
}

/// How often something may happen at most that was not seen in so many trials, with 95 % confidence.
///
/// The exact bound, 1 - 0.05^(1/n), which the rule of three (3/n) comes close to from 30 trials on.
pub fn unseen_rate_max(trials: u32) -> f64 {
    if trials == 0 { 1.0 } else { 1.0 - 0.05_f64.powf(1.0 / f64::from(trials)) }
}

/// What passed trials are worth, in words: `0 of 30 trials: < 9.5 % at 95 %`.
pub fn unseen_text(trials: u32) -> String {
    let percent = unseen_rate_max(trials) * 100.0;
    match trials {
        0 => "without trials".to_owned(),
        1 => "seen once".to_owned(),
        2..100 => format!("0 of {trials} trials: < {percent:.1} % at 95 %"),
        100..1_000 => format!("0 of {trials} trials: < {percent:.2} % at 95 %"),
        1_000.. => {
            let trials = count_text(u64::from(trials));
            format!("0 of {trials} trials: < {percent:.3} % at 95 %")
        }
    }
}

/// A number with a comma before each three digits.
pub(crate) fn count_text(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as people read it: `85 µs`, `3.2 ms`, `1.50 s`.
pub(crate) fn time_text(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        1_000_000.. => format!("{:.2} s", time.as_secs_f64()),
    }
}
