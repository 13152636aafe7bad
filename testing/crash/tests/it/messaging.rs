use std::{io::Write, path::PathBuf, time::Duration};

use hapax_crash::messaging::{
    CommittedEvent, MessagingHunt, MessagingMistake, Role, Trouble,
    check::{ArrivedEvent, MessagingFacts, MessagingViolation, check},
};
use hapax_messaging::audit::Kind;

/// A short hunt: the same strikes every time, at moments that differ.
fn hunt(sqlite: bool, kills: usize) -> MessagingHunt {
    MessagingHunt {
        program: PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash")),
        sqlite,
        kills,
        seed: 1,
        lines: 4,
        at: Vec::new(),
        frozen: Some(Duration::from_secs(2)),
        broken: None,
    }
}

fn survives(hunt: &MessagingHunt) {
    let report = hunt.run(&|_| {}).unwrap();
    let _ = writeln!(std::io::stdout(), "seed {}\n{report}", hunt.seed);
    assert!(report.findings.is_empty(), "{report}");
    assert!(report.kills() >= hunt.kills, "too few died:\n{report}");
    for role in [Role::Relay, Role::Consumer] {
        let deaths = report.deaths(role);
        assert!(deaths.at_random > 0, "nobody died at random:\n{report}");
        assert!(deaths.after_sleep > 0, "nobody slept through a lease:\n{report}");
        for place in hunt.places(role) {
            assert!(deaths.at.contains_key(place), "nobody died at {place}:\n{report}");
        }
    }
    for trouble in Trouble::ALL {
        assert!(report.troubles.contains_key(&trouble), "{trouble} never came:\n{report}");
    }
    assert!(report.counts.repeats > 0, "nothing was sent twice:\n{report}");
    assert!(report.counts.rolled_back > 0, "nothing was rolled back:\n{report}");
    assert!(report.counts.dead_letters > 0, "nothing was put aside:\n{report}");
}

#[test]
fn deaths_of_relays_consumers_brokers_and_databases_leave_one_effect_per_event() {
    survives(&hunt(false, 240));
}

#[test]
fn deaths_over_an_outbox_in_sqlite_leave_one_effect_per_event() {
    survives(&hunt(true, 60));
}

/// Lets something go wrong on purpose; the check must see it.
fn notices(broken: MessagingMistake, at: &str, noticed: impl Fn(&MessagingViolation) -> bool) {
    let (at, frozen) = (vec![at.to_owned()], None);
    let hunt = MessagingHunt { lines: 1, at, frozen, broken: Some(broken), ..hunt(false, 12) };
    let report = hunt.run(&|_| {}).unwrap();
    let found = report.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "{broken:?} was not noticed:\n{report}");
    for finding in &report.findings {
        assert!(finding.repeat.contains("messaging --seed 1"), "{}", finding.repeat);
        if finding.dir.exists() {
            std::fs::remove_dir_all(&finding.dir).unwrap();
        }
    }
}

fn is_event(violation: &MessagingViolation, kind: Kind) -> bool {
    matches!(violation, MessagingViolation::Event(finding) if finding.kind == kind)
}

#[test]
fn a_relay_that_acknowledges_before_it_sends_is_noticed() {
    notices(MessagingMistake::AckBeforeSend, "outbox.acknowledge.after", |violation| {
        is_event(violation, Kind::Lost)
    });
}

#[test]
fn a_consumer_that_acknowledges_before_it_commits_is_noticed() {
    notices(MessagingMistake::AckBeforeCommit, "effect.before", |violation| {
        is_event(violation, Kind::EffectMissing)
    });
}

#[test]
fn a_consumer_that_acts_outside_of_its_transaction_is_noticed() {
    notices(MessagingMistake::ActOutside, "effect.after", |violation| {
        is_event(violation, Kind::EffectDoubled)
    });
}

const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

/// Two events of one key, of which the second cannot be acted on.
fn sound() -> MessagingFacts {
    let written = |id: &str, version| CommittedEvent {
        id: id.to_owned(),
        topic: "orders".to_owned(),
        key: "order-1".to_owned(),
        version,
        poison: id == SECOND,
    };
    let arrival = |id: &str| ArrivedEvent {
        id: id.to_owned(),
        topic: "orders".to_owned(),
        key: "order-1".to_owned(),
    };
    let mut facts = MessagingFacts {
        written: vec![written(FIRST, 1), written(SECOND, 2)],
        arrived: vec![arrival(FIRST), arrival(FIRST), arrival(SECOND), arrival(FIRST)],
        effects: vec![FIRST.to_owned()],
        letters: vec![SECOND.to_owned()],
        ..MessagingFacts::default()
    };
    facts.told.committed.insert(FIRST.to_owned());
    facts.told.unknown.insert(SECOND.to_owned());
    facts
}

fn found(change: impl FnOnce(&mut MessagingFacts)) -> Vec<MessagingViolation> {
    let mut facts = sound();
    change(&mut facts);
    check(&facts).1
}

#[test]
fn repeats_under_the_same_id_are_sound() {
    let (counts, violations) = check(&sound());
    assert_eq!(violations, []);
    assert_eq!((counts.events, counts.repeats, counts.effects), (2, 2, 1));
    assert_eq!((counts.unknown, counts.dead_letters), (1, 1));
}

#[test]
fn an_event_that_is_lost_or_swapped_is_found() {
    let lost = found(|facts| facts.arrived.retain(|arrival| arrival.id == FIRST));
    assert!(matches!(&lost[..], [violation] if is_event(violation, Kind::Lost)), "{lost:?}");
    let swapped = found(|facts| facts.arrived.drain(..2).for_each(drop));
    assert!(matches!(&swapped[..], [one] if is_event(one, Kind::Swapped)), "{swapped:?}");
}

#[test]
fn an_effect_that_is_missing_or_doubled_is_found() {
    let missing = found(|facts| facts.effects.clear());
    assert!(matches!(&missing[..], [one] if is_event(one, Kind::EffectMissing)), "{missing:?}");
    let doubled = found(|facts| facts.effects.push(FIRST.to_owned()));
    assert!(matches!(&doubled[..], [one] if is_event(one, Kind::EffectDoubled)), "{doubled:?}");
    let silent = found(|facts| facts.letters.clear());
    assert!(matches!(&silent[..], [one] if is_event(one, Kind::EffectMissing)), "{silent:?}");
}

#[test]
fn an_event_of_a_transaction_that_was_rolled_back_is_found() {
    let rolled_back = found(|facts| {
        facts.written.pop();
        facts.letters.clear();
    });
    assert!(rolled_back.iter().any(|one| is_event(one, Kind::Unknown)), "{rolled_back:?}");
    let survived = found(|facts| facts.told.rolled_back.extend([SECOND.to_owned()]));
    assert_eq!(survived, [MessagingViolation::Survived { id: SECOND.to_owned() }]);
}

#[test]
fn a_confirmed_commit_that_is_gone_is_found() {
    let id = "00000000-0000-4000-8000-000000000003".to_owned();
    let gone = found(|facts| facts.told.committed.extend([id.clone()]));
    assert_eq!(gone, [MessagingViolation::Forgotten { id }]);
}

#[test]
fn an_event_put_aside_or_acted_on_wrongly_is_found() {
    let aside = found(|facts| facts.letters.push(FIRST.to_owned()));
    assert_eq!(aside, [MessagingViolation::PutAside { id: FIRST.to_owned() }]);
    let acted = found(|facts| facts.effects.push(SECOND.to_owned()));
    assert_eq!(acted, [MessagingViolation::Acted { id: SECOND.to_owned() }]);
}
