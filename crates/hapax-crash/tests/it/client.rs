use std::{collections::BTreeMap, io::Write, path::PathBuf};

use hapax_client::Conclusion;
use hapax_crash::client::{
    Broken, Drive, Seen, Told,
    check::{Facts, Kept, Stage, Violation, check},
};

fn drive() -> Drive {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash"));
    Drive { program, kills: 300, seed: 1, workers: 4, only: None, broken: None }
}

#[test]
fn three_hundred_deaths_of_clients_leave_one_effect_per_operation() {
    let drive = drive();
    let summary = drive.run(&|_| {}).unwrap();
    let _ = writeln!(std::io::stdout(), "seed {}\n{summary}", drive.seed);
    assert!(summary.findings.is_empty(), "{summary}");
    assert!(summary.kills() >= drive.kills, "too few died:\n{summary}");
    assert!(summary.killed_at_random > 0, "nobody died at random:\n{summary}");
    assert!(summary.killed_after_sleep > 0, "nobody slept through a lease:\n{summary}");
    assert!(summary.in_company > 0, "no journal was shared:\n{summary}");
    assert!(summary.replays > 0, "nothing was sent twice:\n{summary}");
    for place in drive.places() {
        assert!(summary.killed_at.contains_key(place), "nobody died at {place}:\n{summary}");
    }
}

/// Lets something go wrong on purpose; the check must see it.
fn notices(broken: Broken, noticed: impl Fn(&Violation) -> bool) {
    let summary = Drive { broken: Some(broken), ..drive() }.run(&|_| {}).unwrap();
    let found = summary.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "{broken:?} was not noticed:\n{summary}");
    for finding in &summary.findings {
        assert!(finding.repeat.contains("--seed 1 --only"), "{}", finding.repeat);
        if finding.dir.exists() {
            std::fs::remove_dir_all(&finding.dir).unwrap();
        }
    }
}

#[test]
fn a_server_without_keys_is_noticed() {
    notices(Broken::NaiveServer, |violation| matches!(violation, Violation::Effects { .. }));
}

#[test]
fn a_client_that_keeps_its_keys_in_memory_is_noticed() {
    notices(Broken::ForgetfulClient, |violation| matches!(violation, Violation::SentFirst { .. }));
}

const NAME: &str = "op-1";

/// An operation that was sent twice, happened once and was told so.
fn sound() -> Facts {
    let answer = "effect 1 of op-1".to_owned();
    let seen = Seen {
        keys: ["k-1".to_owned()].into(),
        arrivals: 2,
        effects: vec![answer.clone()],
        ..Seen::default()
    };
    let conclusion = Conclusion::Done;
    let kept = Kept { key: "k-1".to_owned(), conclusion: Some(conclusion), answer: answer.clone() };
    let told = vec![Told { name: NAME.to_owned(), conclusion, answer }];
    let (name, other) = (NAME.to_owned(), NAME.to_owned());
    Facts { seen: BTreeMap::from([(name, seen)]), kept: BTreeMap::from([(other, kept)]), told }
}

/// Changes what the server and the journal know, and says what is found then.
fn found(stage: Stage, change: impl FnOnce(&mut Seen, &mut Kept)) -> Vec<Violation> {
    let mut facts = sound();
    facts.told.clear();
    change(facts.seen.get_mut(NAME).unwrap(), facts.kept.get_mut(NAME).unwrap());
    check(&facts, stage)
}

#[test]
fn one_effect_kept_and_told_is_sound() {
    assert_eq!(check(&sound(), Stage::Resumed), []);
    assert_eq!(check(&sound(), Stage::AskedAgain), []);
}

#[test]
fn a_second_key_is_found_wherever_it_is() {
    let sent = found(Stage::Resumed, |seen, _| seen.keys.extend(["k-2".to_owned()]));
    let kept = found(Stage::Resumed, |_, kept| kept.key = "k-2".to_owned());
    let (name, keys) = (NAME.to_owned(), vec!["k-1".to_owned(), "k-2".to_owned()]);
    assert_eq!(sent, [Violation::KeyChanged { name, keys }]);
    assert_eq!(sent, kept);
}

#[test]
fn a_word_that_is_not_what_happened_is_found() {
    for conclusion in [Conclusion::Refused, Conclusion::GaveUp] {
        let violations = found(Stage::Resumed, |_, kept| kept.conclusion = Some(conclusion));
        assert!(matches!(violations[..], [Violation::KeptOtherwise { .. }]), "{violations:?}");
    }
    let violations = found(Stage::Resumed, |_, kept| kept.answer = "effect 2 of op-1".to_owned());
    assert!(matches!(violations[..], [Violation::KeptOtherwise { .. }]), "{violations:?}");
    let violations = found(Stage::Resumed, |seen, _| seen.effects.clear());
    assert!(matches!(violations[..], [Violation::KeptOtherwise { .. }]), "{violations:?}");
}

#[test]
fn unknown_is_an_end_until_it_is_asked_for_again() {
    let unknown = |_: &mut Seen, kept: &mut Kept| kept.conclusion = Some(Conclusion::Unknown);
    assert_eq!(found(Stage::Resumed, unknown), []);
    let (name, conclusion) = (NAME.to_owned(), Conclusion::Unknown);
    assert_eq!(found(Stage::AskedAgain, unknown), [Violation::Unanswered { name, conclusion }]);
}

#[test]
fn what_is_pending_at_the_end_is_found() {
    let violations = found(Stage::Resumed, |_, kept| kept.conclusion = None);
    assert_eq!(violations, [Violation::LeftPending { name: NAME.to_owned() }]);
}

#[test]
fn a_caller_who_was_told_otherwise_before_the_crash_is_found() {
    let mut facts = sound();
    facts.told[0].answer = "effect 2 of op-1".to_owned();
    assert!(matches!(check(&facts, Stage::Resumed)[..], [Violation::ToldOtherwise { .. }]));
    facts.told[0].conclusion = Conclusion::Refused;
    assert!(matches!(check(&facts, Stage::Resumed)[..], [Violation::ToldOtherwise { .. }]));
}

#[test]
fn an_operation_that_the_journal_forgot_is_found() {
    let mut facts = sound();
    facts.kept.clear();
    assert_eq!(check(&facts, Stage::Resumed), [Violation::Forgotten { name: NAME.to_owned() }]);
}
