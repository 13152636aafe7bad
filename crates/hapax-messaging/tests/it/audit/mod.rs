//! What an audit finds, and what it does not find where there is nothing.

use hapax_core::outbox::{EventId, Position};
use hapax_messaging::audit::{Audit, Emitted, Excuse, Kind, Report, Rules};
use proptest::{collection::vec, prelude::*};

/// The key of each event, in order of position from 1.
type Log = Vec<u8>;

fn id(position: Position) -> EventId {
    EventId::from_bytes(i128::from(position).to_be_bytes())
}

fn key(log: &Log, position: Position) -> String {
    log[usize::try_from(position).unwrap() - 1].to_string()
}

fn positions(log: &Log) -> impl Iterator<Item = Position> {
    1..=Position::try_from(log.len()).unwrap()
}

fn emitted(log: &Log) -> Audit {
    let mut audit = Audit::new();
    for position in positions(log) {
        let (topic, key) = ("orders".to_owned(), key(log, position));
        audit.emitted(Emitted { id: id(position), position, topic, key });
    }
    audit
}

/// What an audit says when these arrive, in this order.
fn audited(log: &Log, arrivals: &[Position], rules: Rules) -> Report {
    let mut audit = emitted(log);
    for position in arrivals {
        audit.arrived(id(*position), "orders", key(log, *position));
    }
    audit.report(rules)
}

/// An order in which a relay that dies now and then delivers a log: keys overtake each other, and
/// the last few of a key come again, in order.
fn delivery(log: &Log, chances: &[u8]) -> Vec<Position> {
    let mut keys: Vec<Vec<Position>> = vec![Vec::new(); 4];
    for position in positions(log) {
        keys[usize::from(log[usize::try_from(position).unwrap() - 1])].push(position);
    }
    let (mut at, mut arrivals) = ([0usize; 4], Vec::new());
    let mut chances = chances.iter().cycle();
    while (0..4).any(|one| at[one] < keys[one].len()) {
        let chance = *chances.next().unwrap();
        let one = usize::from(chance % 4);
        if at[one] < keys[one].len() {
            arrivals.push(keys[one][at[one]]);
            at[one] += 1;
        } else if let Some(other) = (0..4).find(|other| at[*other] < keys[*other].len()) {
            arrivals.push(keys[other][at[other]]);
            at[other] += 1;
        }
        // It dies, and what it had not acknowledged comes again.
        if chance > 230 && arrivals.len() < 400 {
            at[one] = at[one].saturating_sub(3);
        }
    }
    arrivals
}

fn logs() -> impl Strategy<Value = (Log, Vec<u8>)> {
    (vec(0u8..4, 1..60), vec(any::<u8>(), 1..200))
}

proptest! {
    #[test]
    fn what_is_delivered_in_order_per_key_is_clean((log, chances) in logs()) {
        let arrivals = delivery(&log, &chances);
        let report = audited(&log, &arrivals, Rules::default());
        prop_assert!(report.is_clean(), "{arrivals:?}: {report:?}");
        prop_assert_eq!(report.delivered, log.len() as u64);
        prop_assert_eq!(report.repeats, (arrivals.len() - log.len()) as u64);
    }

    #[test]
    fn an_event_that_never_arrives_is_lost_and_no_other((log, chances) in logs(), which: usize) {
        let missing = 1 + Position::try_from(which % log.len()).unwrap();
        let mut arrivals = delivery(&log, &chances);
        arrivals.retain(|position| *position != missing);
        let report = audited(&log, &arrivals, Rules::default());
        prop_assert_eq!(report.findings.len(), 1);
        let found = &report.findings[0];
        prop_assert_eq!((found.kind, found.position), (Kind::Lost, Some(missing)));
    }

    #[test]
    fn an_event_that_comes_after_a_later_one_of_its_key_is_swapped(
        (log, chances) in logs(), which: usize,
    ) {
        let late = 1 + Position::try_from(which % log.len()).unwrap();
        let follows = positions(&log).any(|other| other > late && key(&log, other) == key(&log, late));
        let mut arrivals = delivery(&log, &chances);
        arrivals.retain(|position| *position != late);
        arrivals.push(late);
        let report = audited(&log, &arrivals, Rules::default());
        prop_assert_eq!(report.count(Kind::Swapped), u64::from(follows), "{:?}", report);
        prop_assert_eq!(report.is_clean(), !follows);
    }

    #[test]
    fn repetitions_are_counted_and_found_where_none_are_allowed((log, chances) in logs()) {
        let arrivals = delivery(&log, &chances);
        let rules = Rules { repeats: false, ..Rules::default() };
        let report = audited(&log, &arrivals, rules);
        prop_assert_eq!(report.is_clean(), arrivals.len() == log.len());
        let again = |position: &Position| {
            arrivals.iter().filter(|arrived| *arrived == position).count() > 1
        };
        let repeated = positions(&log).filter(again).count();
        prop_assert_eq!(report.count(Kind::Repeated), repeated as u64);
    }

    #[test]
    fn each_event_has_one_effect_or_it_is_found(effects in vec(0u8..3, 1..40)) {
        let log: Log = effects.iter().map(|_| 0).collect();
        let mut audit = emitted(&log);
        for (position, times) in positions(&log).zip(&effects) {
            audit.arrived(id(position), "orders", key(&log, position));
            (0..*times).for_each(|_| audit.acted(id(position)));
        }
        let report = audit.report(Rules { effects: true, ..Rules::default() });
        let count = |wanted: u8| effects.iter().filter(|times| **times == wanted).count() as u64;
        prop_assert_eq!(report.count(Kind::EffectMissing), count(0));
        prop_assert_eq!(report.count(Kind::EffectDoubled), count(2));
        prop_assert_eq!(report.effects, count(1) + count(2));
    }
}

#[test]
fn what_waits_or_is_parked_is_not_lost() {
    let log = vec![0, 0, 1];
    for (waiting, clean) in [(true, true), (false, false)] {
        let mut audit = emitted(&log);
        audit.arrived(id(1), "orders", "0");
        audit.excuse(id(2), Excuse::Parked);
        audit.excuse(id(3), Excuse::Waiting);
        let report = audit.report(Rules { waiting, ..Rules::default() });
        assert_eq!((report.waiting, report.parked, report.is_clean()), (1, 1, clean));
        assert_eq!(report.count(Kind::Undelivered), if clean { 0 } else { 2 });
    }
}

#[test]
fn what_nobody_emitted_is_found_unless_the_log_is_known_to_be_shorter() {
    for (strangers, clean) in [(true, true), (false, false)] {
        let mut audit = emitted(&vec![0]);
        audit.arrived(id(1), "orders", "0");
        audit.arrived(id(7), "orders", "0");
        audit.arrived_unreadable();
        let report = audit.report(Rules { strangers, ..Rules::default() });
        assert_eq!((report.strangers, report.is_clean()), (2, clean));
    }
}

#[test]
fn an_event_that_arrives_under_another_key_is_misplaced() {
    let mut audit = emitted(&vec![0]);
    audit.arrived(id(1), "orders", "1");
    assert_eq!(audit.report(Rules::default()).count(Kind::Misplaced), 1);
}

#[test]
fn it_does_not_matter_which_side_is_told_first() {
    let mut audit = Audit::new();
    audit.acted(id(1));
    audit.arrived(id(1), "orders", "0");
    let (topic, key) = ("orders".to_owned(), "0".to_owned());
    audit.emitted(Emitted { id: id(1), position: 1, topic, key });
    let report = audit.report(Rules { effects: true, ..Rules::default() });
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.emitted, report.delivered, report.effects), (1, 1, 1));
}
