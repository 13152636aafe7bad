//! Something that goes on for a while, and is told once.

use std::time::Duration;

use tokio::time::Instant;

/// The least time between two warnings about the same thing, however often it comes and goes.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// A trouble that many hear of: each lane meets the same outage, and each try meets it again.
#[derive(Debug, Default)]
pub(super) struct OutageEpisode {
    is_told: bool,
    told_at: Option<Instant>,
}

impl OutageEpisode {
    /// It is so now; whether somebody is to be told.
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        let lately = self.told_at.is_some_and(|at| now.duration_since(at) < TOLD_EVERY);
        if self.is_told || lately {
            return false;
        }
        (self.is_told, self.told_at) = (true, Some(now));
        true
    }

    /// It is over: the next one is another.
    pub(super) fn ends(&mut self) {
        self.is_told = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_and_one_that_comes_and_goes_once_a_minute() {
        let (mut outage, began) = (OutageEpisode::default(), Instant::now());
        let mut told_at = Vec::new();
        for second in 0..600 {
            if outage.goes_on(began + Duration::from_secs(second)) {
                told_at.push(second);
            }
        }
        assert_eq!(told_at, [0], "it lasts for ten minutes");
        for second in 600..800 {
            outage.ends();
            if outage.goes_on(began + Duration::from_secs(second)) {
                told_at.push(second);
            }
        }
        assert_eq!(told_at, [0, 600, 660, 720, 780]);
    }
}
