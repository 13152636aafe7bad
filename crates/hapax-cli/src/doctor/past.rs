//! Whether the store still has everything that it acknowledged, and what to do where it was restored.

use std::time::Duration;

use hapax::{
    StoreError, Timestamp,
    incarnation::{Finding, IncarnationMark, IncarnationReading, compare},
};

use super::{
    Expectations,
    diagnosis::{Diagnosis, unseen},
};
use crate::{quarantine, sentence, units::span};

const QUARANTINE: &str = "quarantine";
const LIFT: &str = "hapax quarantine lift --store URL --why '…', once you know that nothing of it may happen twice (docs/runbook.md)";

/// What a store says of its past, and what somebody says about it.
struct PastFacts {
    reading: IncarnationReading,
    /// Somebody restored it.
    is_restored: bool,
    client_retries_for: Option<Duration>,
}

/// What is said of every store, and of one that was restored.
const ALWAYS: &[fn(&PastFacts) -> Diagnosis] = &[quarantine_in_force];
const AFTER_RESTORE: &[fn(&PastFacts) -> Diagnosis] = &[missing, witnesses, retries];

/// What is to be said of a store that says this of its past, or why it cannot be asked.
pub(super) fn examine(
    reading: Result<IncarnationReading, StoreError>,
    expected: Expectations,
) -> Vec<Diagnosis> {
    let reading = match reading {
        Ok(reading) => reading,
        Err(error) => return vec![unseen(QUARANTINE, &sentence(&error))],
    };
    let Expectations { is_restored, client_retries_for, .. } = expected;
    let facts = PastFacts { reading, is_restored, client_retries_for };
    let more = if is_restored { AFTER_RESTORE } else { &[] };
    ALWAYS.iter().chain(more).map(|check| check(&facts)).collect()
}

fn quarantine_in_force(facts: &PastFacts) -> Diagnosis {
    let reading = &facts.reading;
    let found = Diagnosis::new(QUARANTINE, quarantine::verdict(reading));
    let refused = "keys that are not in the store are refused with 503 until everybody who was at work vouches, or a person decides";
    let mark = reading.mark.as_ref();
    match (compare(reading, None), mark.and_then(|mark| mark.quarantine.as_ref())) {
        (Finding::Changed(_), _) => found.warning(
            refused,
            "start the gateways, and look again: hapax quarantine show --store URL",
        ),
        (Finding::New | Finding::Same | Finding::Noted | Finding::Outdated, Some(_)) => {
            found.warning(refused, LIFT)
        }
        (Finding::New | Finding::Same | Finding::Noted | Finding::Outdated, None) => {
            if facts.is_restored { not_noticed(found, mark) } else { found }
        }
    }
}

/// Somebody says that it was restored, and nothing in it does.
fn not_noticed(found: Diagnosis, mark: Option<&IncarnationMark>) -> Diagnosis {
    let risk = "keys that were used since the backup are absent, and their retries run again";
    let begin = "stop the gateways, hapax quarantine begin --store URL, and start them again";
    match mark.and_then(|mark| mark.lifted.as_ref()) {
        None => found.danger(risk, begin),
        Some(lifted) => {
            let (at, who) = (lifted.at, lifted.reason.who());
            let when = format!("if {who} did not mean this restore at {at}: {begin}");
            found.warning(risk, when)
        }
    }
}

/// Since when acknowledged work may be missing, as far as anything in the store tells.
fn missing_since(reading: &IncarnationReading) -> Option<Timestamp> {
    let quarantine = reading.mark.as_ref().and_then(|mark| mark.quarantine.as_ref());
    let noted = quarantine.map(|quarantine| quarantine.seen_before);
    let seen = reading.processes.iter().map(|process| process.seen_at).max();
    noted.or(seen).filter(|at| *at > Timestamp::ZERO)
}

fn missing(facts: &PastFacts) -> Diagnosis {
    const NAME: &str = "missing";
    let risk = "effects of that time were made and may have no record here; events of it were sent and may be sent again under other ids";
    match missing_since(&facts.reading) {
        Some(since) => Diagnosis::new(NAME, format!("what was acknowledged after {since}")).note(
            risk,
            "compare it with what your service did since then (its database, the bank, its log), key by key",
        ),
        None => Diagnosis::new(NAME, "nothing in the store tells since when").note(
            risk,
            "take the time the backup was made, and compare what your service did since then, key by key",
        ),
    }
}

/// Who was at work, and whether they are there to write back what they were told.
fn witnesses(facts: &PastFacts) -> Diagnosis {
    let reading = &facts.reading;
    let here = reading.processes.iter().filter(|one| one.incarnation == reading.incarnation);
    let vouching = here.filter(|process| process.vouches).count();
    let before = reading.processes.iter().filter(|one| one.incarnation != reading.incarnation);
    let words =
        format!("{} at work before, {vouching} that vouch for what they were told", before.count());
    Diagnosis::new("processes", words)
}

/// When the last retry of what is missing can come.
fn retries(facts: &PastFacts) -> Diagnosis {
    const NAME: &str = "retries";
    let Some(window) = facts.client_retries_for else {
        return Diagnosis::new(NAME, "it was not said how long clients go on trying").note(
            "a retry of what is missing runs again if it comes after the quarantine was lifted",
            "say it: --client-retries-for 72h",
        );
    };
    // What is missing was acknowledged before it was noticed.
    let until = facts.reading.now.plus(window);
    let found = format!(
        "clients try for {}: the last retry of what is missing comes before {until}",
        span(window)
    );
    Diagnosis::new(NAME, found).note(
        "a retry of what is missing runs again if it comes after the quarantine was lifted",
        "lift it after that, or once each key that is missing was decided",
    )
}

#[cfg(test)]
mod tests {
    use hapax::{
        Reason,
        incarnation::{Incarnation, Lifted, LossCause, Quarantine, Remembered},
    };

    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn facts(quarantine: Option<Quarantine>, lifted: Option<Lifted>) -> PastFacts {
        let incarnation = Incarnation::new("system 1", 2);
        let mark = IncarnationMark {
            incarnation: incarnation.clone(),
            position: 7,
            began: 0,
            quarantine,
            lifted,
        };
        let reading = IncarnationReading {
            now: at(1_000),
            incarnation,
            synchronous: false,
            mark: Some(mark),
            remembered: Remembered::NotKept,
            processes: Vec::new(),
        };
        PastFacts { reading, is_restored: true, client_retries_for: None }
    }

    fn quarantined(seen_before: Timestamp) -> Quarantine {
        let before = Incarnation::new("system 1", 1);
        Quarantine { since: at(900), cause: LossCause::Restore, before, seen_before }
    }

    #[test]
    fn a_restore_that_nothing_noticed_is_a_danger_unless_somebody_has_decided() {
        let unnoticed = facts(None, None);
        assert_eq!(quarantine_in_force(&unnoticed).severity(), Some(Severity::Danger));
        let untouched = PastFacts { is_restored: false, ..unnoticed };
        assert_eq!(quarantine_in_force(&untouched).concern, None);
        let reason = Reason::new("ada", "the bank has it").unwrap();
        let decided = quarantine_in_force(&facts(None, Some(Lifted { at: at(950), reason })));
        assert_eq!(decided.severity(), Some(Severity::Warning));
        assert!(decided.concern.unwrap().advice.starts_with("if ada did not mean this restore"));
        let noticed = quarantine_in_force(&facts(Some(quarantined(at(800))), None));
        assert_eq!(noticed.severity(), Some(Severity::Warning));
    }

    #[test]
    fn since_when_work_is_missing_is_told_only_if_it_is_known() {
        let told = missing(&facts(Some(quarantined(at(800))), None));
        assert_eq!(told.found, "what was acknowledged after 1970-01-01T00:13:20.000000Z");
        let unknown = missing(&facts(Some(quarantined(Timestamp::ZERO)), None));
        assert_eq!(unknown.found, "nothing in the store tells since when");
    }

    #[test]
    fn the_last_retry_comes_a_window_after_now_at_the_latest() {
        assert!(
            retries(&facts(None, None)).concern.unwrap().advice.contains("--client-retries-for")
        );
        let window = Some(Duration::from_secs(3_600));
        let told = retries(&PastFacts { client_retries_for: window, ..facts(None, None) });
        assert!(told.found.ends_with("comes before 1970-01-01T01:16:40.000000Z"), "{}", told.found);
    }
}
