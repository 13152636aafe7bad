use std::{collections::BTreeMap, io::Write, path::PathBuf};

use hapax_client::Conclusion;
use hapax_crash::client::{
    ClientHunt, ClientMistake, SeenCall, Told,
    check::{ClientFacts, ClientViolation, KeptCall, Stage, check},
};

fn hunt() -> ClientHunt {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash"));
    ClientHunt { program, kills: 300, seed: 1, workers: 4, only: None, broken: None }
}

#[test]
fn three_hundred_deaths_of_clients_leave_one_effect_per_operation() {
    let hunt = hunt();
    let report = hunt.run(&|_| {}).unwrap();
    let _ = writeln!(std::io::stdout(), "seed {}\n{report}", hunt.seed);
    assert!(report.findings.is_empty(), "{report}");
    assert!(report.deaths.kills() >= hunt.kills, "too few died:\n{report}");
    assert!(report.deaths.at_random > 0, "nobody died at random:\n{report}");
    assert!(report.deaths.after_sleep > 0, "nobody slept through a lease:\n{report}");
    assert!(report.in_company > 0, "no journal was shared:\n{report}");
    assert!(report.encrypted > 0, "no journal was encrypted:\n{report}");
    assert!(report.encrypted < report.episodes, "no journal was clear:\n{report}");
    assert!(report.replays > 0, "nothing was sent twice:\n{report}");
    for place in hunt.places() {
        assert!(report.deaths.at.contains_key(place), "nobody died at {place}:\n{report}");
    }
}

/// Lets something go wrong on purpose; the check must see it.
fn notices(broken: ClientMistake, noticed: impl Fn(&ClientViolation) -> bool) {
    let report = ClientHunt { broken: Some(broken), ..hunt() }.run(&|_| {}).unwrap();
    let found = report.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "{broken:?} was not noticed:\n{report}");
    for finding in &report.findings {
        assert!(finding.repeat.contains("--seed 1 --only"), "{}", finding.repeat);
        if finding.dir.exists() {
            std::fs::remove_dir_all(&finding.dir).unwrap();
        }
    }
}

#[test]
fn a_server_without_keys_is_noticed() {
    notices(ClientMistake::NaiveServer, |violation| {
        matches!(violation, ClientViolation::Effects { .. })
    });
}

#[test]
fn a_client_that_keeps_its_keys_in_memory_is_noticed() {
    notices(ClientMistake::ForgetfulClient, |violation| {
        matches!(violation, ClientViolation::SentFirst { .. })
    });
}

const NAME: &str = "op-1";

/// An operation that was sent twice, happened once and was told so.
fn sound() -> ClientFacts {
    let answer = "effect 1 of op-1".to_owned();
    let seen = SeenCall {
        keys: ["k-1".to_owned()].into(),
        arrivals: 2,
        effects: vec![answer.clone()],
        ..SeenCall::default()
    };
    let conclusion = Conclusion::Done;
    let kept =
        KeptCall { key: "k-1".to_owned(), conclusion: Some(conclusion), answer: answer.clone() };
    let told = vec![Told { name: NAME.to_owned(), conclusion, answer }];
    let (name, other) = (NAME.to_owned(), NAME.to_owned());
    ClientFacts {
        seen: BTreeMap::from([(name, seen)]),
        kept: BTreeMap::from([(other, kept)]),
        told,
    }
}

/// Changes what the server and the journal know, and says what is found then.
fn found(stage: Stage, change: impl FnOnce(&mut SeenCall, &mut KeptCall)) -> Vec<ClientViolation> {
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
    assert_eq!(sent, [ClientViolation::KeyChanged { name, keys }]);
    assert_eq!(sent, kept);
}

#[test]
fn a_word_that_is_not_what_happened_is_found() {
    for conclusion in [Conclusion::Refused, Conclusion::GaveUp] {
        let violations = found(Stage::Resumed, |_, kept| kept.conclusion = Some(conclusion));
        assert!(
            matches!(violations[..], [ClientViolation::KeptOtherwise { .. }]),
            "{violations:?}"
        );
    }
    let violations = found(Stage::Resumed, |_, kept| kept.answer = "effect 2 of op-1".to_owned());
    assert!(matches!(violations[..], [ClientViolation::KeptOtherwise { .. }]), "{violations:?}");
    let violations = found(Stage::Resumed, |seen, _| seen.effects.clear());
    assert!(matches!(violations[..], [ClientViolation::KeptOtherwise { .. }]), "{violations:?}");
}

#[test]
fn unknown_is_an_end_until_it_is_asked_for_again() {
    let unknown =
        |_: &mut SeenCall, kept: &mut KeptCall| kept.conclusion = Some(Conclusion::Unknown);
    assert_eq!(found(Stage::Resumed, unknown), []);
    let (name, conclusion) = (NAME.to_owned(), Conclusion::Unknown);
    assert_eq!(
        found(Stage::AskedAgain, unknown),
        [ClientViolation::Unanswered { name, conclusion }]
    );
}

#[test]
fn what_is_pending_at_the_end_is_found() {
    let violations = found(Stage::Resumed, |_, kept| kept.conclusion = None);
    assert_eq!(violations, [ClientViolation::LeftPending { name: NAME.to_owned() }]);
}

#[test]
fn a_caller_who_was_told_otherwise_before_the_crash_is_found() {
    let mut facts = sound();
    facts.told[0].answer = "effect 2 of op-1".to_owned();
    assert!(matches!(check(&facts, Stage::Resumed)[..], [ClientViolation::ToldOtherwise { .. }]));
    facts.told[0].conclusion = Conclusion::Refused;
    assert!(matches!(check(&facts, Stage::Resumed)[..], [ClientViolation::ToldOtherwise { .. }]));
}

#[test]
fn an_operation_that_the_journal_forgot_is_found() {
    let mut facts = sound();
    facts.kept.clear();
    assert_eq!(
        check(&facts, Stage::Resumed),
        [ClientViolation::Forgotten { name: NAME.to_owned() }]
    );
}
