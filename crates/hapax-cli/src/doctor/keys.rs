//! What stored keys say, whatever the store.

use std::time::Duration;

use super::diagnosis::Diagnosis;
use crate::units::span;

/// What was seen of the stored keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyFacts {
    /// How many records were looked at.
    pub(super) looked_at: u64,
    /// The shortest time that one of the finished ones is kept.
    pub(super) shortest_window: Option<Duration>,
    /// How many of them should have been removed for more than an hour.
    pub(super) past_retention: u64,
    pub(super) in_doubt: u64,
    /// How long the oldest doubt has lasted.
    pub(super) oldest_doubt: Duration,
    pub(super) client_retries_for: Option<Duration>,
}

pub(super) const CHECKS: &[fn(&KeyFacts) -> Diagnosis] = &[retention, purge, doubts];

fn retention(facts: &KeyFacts) -> Diagnosis {
    const NAME: &str = "retention";
    let Some(window) = facts.shortest_window else {
        return Diagnosis::new(NAME, "no finished key is stored yet");
    };
    let words = format!("finished keys are kept for {} or longer", span(window));
    against_clients(Diagnosis::new(NAME, words), window, facts.client_retries_for)
}

/// What it means to keep keys this long for clients that try for so long.
pub(super) fn against_clients(
    found: Diagnosis,
    window: Duration,
    client_retries_for: Option<Duration>,
) -> Diagnosis {
    let Some(tries) = client_retries_for else { return found };
    let advice = format!(
        "set retention to {} h or longer, two to three times what clients try for",
        (3 * tries.as_secs()).div_ceil(3600)
    );
    let words = format!("clients try for {}", span(tries));
    if window < tries {
        return found.danger(
            format!("{words}: a retry after the key was removed runs a second time"),
            advice,
        );
    }
    if window < 2 * tries {
        return found.note(
            format!("{words}: little is left for a client that was off for a while"),
            advice,
        );
    }
    found
}

fn purge(facts: &KeyFacts) -> Diagnosis {
    let KeyFacts { past_retention, looked_at, .. } = facts;
    let words =
        format!("of {looked_at} keys looked at, {past_retention} are past retention by an hour");
    let found = Diagnosis::new("purge", words);
    if past_retention * 10 <= *looked_at {
        return found;
    }
    found.note(
        "nobody removes what is over, so that the store grows",
        "run a gateway, or hapax keys purge every five minutes",
    )
}

fn doubts(facts: &KeyFacts) -> Diagnosis {
    const NAME: &str = "keys in doubt";
    match facts.in_doubt {
        0 => Diagnosis::new(NAME, "none"),
        count => Diagnosis::new(NAME, format!("{count}, the oldest for {}", span(facts.oldest_doubt)))
            .warning(
                "nobody knows whether these happened, and their retries are refused until somebody says so",
                "hapax keys list --state in_doubt, then hapax keys explain and resolve",
            ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    const HOUR: Duration = Duration::from_secs(3600);

    fn facts(retries: Option<u32>) -> KeyFacts {
        KeyFacts {
            looked_at: 1000,
            shortest_window: Some(24 * HOUR),
            past_retention: 3,
            in_doubt: 0,
            oldest_doubt: Duration::ZERO,
            client_retries_for: retries.map(|hours| hours * HOUR),
        }
    }

    #[test]
    fn a_window_is_held_against_how_long_clients_try() {
        for (retries, severity) in [
            (None, None),
            (Some(8), None),
            (Some(20), Some(Severity::Note)),
            (Some(72), Some(Severity::Danger)),
        ] {
            assert_eq!(retention(&facts(retries)).severity(), severity, "{retries:?}");
        }
        let advice = retention(&facts(Some(72))).concern.unwrap().advice;
        assert!(advice.contains("216 h"), "{advice}");
    }

    #[test]
    fn what_nobody_removes_or_resolves_is_told() {
        assert!(CHECKS.iter().all(|check| check(&facts(None)).concern.is_none()));
        let unpurged = KeyFacts { past_retention: 900, ..facts(None) };
        assert_eq!(purge(&unpurged).severity(), Some(Severity::Note));
        let doubted = KeyFacts { in_doubt: 2, oldest_doubt: 5 * HOUR, ..facts(None) };
        assert_eq!(doubts(&doubted).found, "2, the oldest for 5 h");
    }
}
