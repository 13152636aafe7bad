//! The letter is never better than the worst that was found, nor than what is known supports.

use std::time::Duration;

use hapax_examine::{
    Control, ControlVerdict, Defect, DefectClass, ExaminationExit, ExaminationMemory,
    ExaminationRecord, Grade, GradeLetter, OracleLevel, PROBES, ProbeRecord, ProbeVerdict,
    RaceOverlap, unseen_rate_max, unseen_text,
};

/// A record in which every probe passed, and races had trials enough.
pub(crate) fn flawless() -> ExaminationRecord {
    let probes = PROBES.iter().map(|probe| ProbeRecord {
        probe,
        verdict: ProbeVerdict::Pass {
            trials: if probe.name.starts_with("race") { 400 } else { 1 },
        },
        was_run: true,
        exchanges: Vec::new(),
        notes: Vec::new(),
        spreads: Vec::new(),
        reach: None,
        took: Duration::from_millis(5),
    });
    ExaminationRecord {
        oracle: OracleLevel::Counted,
        oracle_text: "GET /payments?ref={marker} /items/length".to_owned(),
        controls: vec![Control {
            id: "C0",
            question: "Do two keys have two effects?",
            verdict: ControlVerdict::Holds("two keys, two effects".to_owned()),
        }],
        learned: None,
        probes: probes.collect(),
        operations: 12,
        memory: ExaminationMemory::default(),
        seed: 7,
        took: Duration::from_secs(3),
    }
}

/// The same with this verdict of that probe.
pub(crate) fn with(
    mut record: ExaminationRecord,
    id: &str,
    verdict: ProbeVerdict,
) -> ExaminationRecord {
    let probe = record.probes.iter_mut().find(|probe| probe.probe.id == id);
    probe.unwrap().verdict = verdict;
    record
}

pub(crate) fn failed(classes: &[DefectClass]) -> ProbeVerdict {
    let defects = classes.iter().map(|class| Defect {
        class: *class,
        sentence: format!("something of {} happened to 2 payments", class.name()),
        advice: "do it otherwise",
        shown_by: vec![1],
    });
    ProbeVerdict::Fail { trials: 1, defects: defects.collect() }
}

fn open() -> ProbeVerdict {
    ProbeVerdict::inconclusive("it did not come about")
}

fn letter(record: &ExaminationRecord) -> &'static str {
    match record.grade() {
        Grade::Given(given) => given.letter.name(),
        Grade::Withheld { .. } => "none",
    }
}

fn wanting(record: &ExaminationRecord) -> Vec<String> {
    match record.grade() {
        Grade::Given(given) => given.wanting,
        Grade::Withheld { why } => vec![format!("not graded: {why}")],
    }
}

#[test]
fn the_worst_defect_decides() {
    use DefectClass::{Contract, ContractHigh, Hygiene, Liveness, Safety};
    let cases: [(&[DefectClass], &str); 8] = [
        (&[], "A+"),
        (&[Hygiene], "A-"),
        (&[Contract], "B"),
        (&[ContractHigh], "C"),
        (&[Liveness], "D"),
        (&[Safety], "F"),
        (&[Hygiene, Contract, ContractHigh], "C"),
        (&[Hygiene, Safety, Liveness], "F"),
    ];
    for (classes, expected) in cases {
        let verdict =
            if classes.is_empty() { ProbeVerdict::Pass { trials: 1 } } else { failed(classes) };
        let record = with(flawless(), "V14", verdict);
        assert_eq!(letter(&record), expected, "{classes:?}: {:?}", record.grade());
    }
}

#[test]
fn a_probe_that_failed_without_saying_how_is_no_a() {
    assert_eq!(letter(&with(flawless(), "V06", failed(&[]))), "B");
}

#[test]
fn an_a_needs_these_probes_and_an_a_plus_those() {
    let for_an_a = [
        "V01", "V02", "V03", "V04", "V05", "V06", "V07", "V08", "V09", "V10", "V11", "V12", "V13",
        "V16", "V19", "V20", "V21", "V25",
    ];
    let for_an_a_plus = ["V23", "V24", "V26"];
    for probe in PROBES {
        let record = with(flawless(), probe.id, open());
        let expected = if for_an_a.contains(&probe.id) {
            "B"
        } else if for_an_a_plus.contains(&probe.id) {
            "A"
        } else {
            "A+"
        };
        assert_eq!(letter(&record), expected, "{}", probe.id);
        if expected != "A+" {
            let wanting = wanting(&record);
            assert!(wanting[0].starts_with("for an A"), "{wanting:?}");
            assert!(wanting[0].contains(probe.id), "{wanting:?}");
        }
    }
}

#[test]
fn a_failed_probe_is_conclusive() {
    let record = with(flawless(), "V23", failed(&[DefectClass::Hygiene]));
    assert_eq!(letter(&record), "A-");
    assert_eq!(record.coverage().conclusive, PROBES.len());
}

#[test]
fn without_a_count_nothing_is_better_than_b_and_effects_are_unproven() {
    let levels = [
        (OracleLevel::Answers, "B", true),
        (OracleLevel::Names, "B", true),
        (OracleLevel::Counted, "A+", false),
        (OracleLevel::Received, "A+", false),
    ];
    for (oracle, expected, unproven) in levels {
        let Grade::Given(given) = (ExaminationRecord { oracle, ..flawless() }).grade() else {
            panic!("{oracle:?} is not graded");
        };
        assert_eq!((given.letter.name(), given.effects_unproven), (expected, unproven));
        let says_so = given.reasons.iter().any(|reason| reason.contains("effects unproven"));
        assert_eq!(says_so, unproven, "{:?}", given.reasons);
    }
    let unproven = ExaminationRecord { oracle: OracleLevel::Names, ..flawless() };
    assert_eq!(letter(&with(unproven, "V05", failed(&[DefectClass::ContractHigh]))), "C");
}

#[test]
fn an_a_needs_a_thousand_races_in_all() {
    for (trials, expected) in [(334, "A+"), (333, "B")] {
        let mut record = flawless();
        for id in ["V02", "V03", "V04"] {
            record = with(record, id, ProbeVerdict::Pass { trials });
        }
        assert_eq!(letter(&record), expected, "{trials}");
    }
    let few = with(flawless(), "V02", ProbeVerdict::Pass { trials: 30 });
    let wanting = wanting(&few);
    assert!(wanting[0].contains("1,000") && wanting[0].contains("830"), "{wanting:?}");
}

#[test]
fn a_refuted_control_withholds_the_grade_and_says_why() {
    let mut record = flawless();
    record.controls[0].verdict = ControlVerdict::Refuted("it is idempotent by itself".to_owned());
    assert_eq!(record.grade(), Grade::Withheld { why: "it is idempotent by itself".to_owned() });
    assert_eq!(record.exit().code(), 3);
}

#[test]
fn where_nothing_was_concluded_there_is_no_grade() {
    let mut record = flawless();
    for probe in &mut record.probes {
        probe.verdict = open();
    }
    assert_eq!(letter(&record), "none");
    record.probes.clear();
    assert_eq!((letter(&record), record.exit()), ("none", ExaminationExit::Inconclusive));
}

#[test]
fn a_program_ends_with_what_was_found() {
    assert_eq!(flawless().exit().code(), 0);
    let found = with(flawless(), "V27", failed(&[DefectClass::Hygiene]));
    assert_eq!(found.exit().code(), 1);
    assert_eq!(with(found, "V28", open()).exit().code(), 1);
    let undecided = with(flawless(), "V28", open());
    assert_eq!(undecided.exit().code(), 3);
    // What was not given is no fault of the API.
    let mut not_asked = undecided;
    let probe = not_asked.probes.iter_mut().find(|probe| probe.probe.id == "V28");
    probe.expect("V28").was_run = false;
    assert_eq!(not_asked.exit().code(), 0);
    assert_eq!(not_asked.coverage().conclusive, PROBES.len() - 1);
}

#[test]
fn letters_have_an_order_and_names() {
    let names: Vec<_> = GradeLetter::ALL.into_iter().map(GradeLetter::name).collect();
    assert_eq!(names, ["F", "D", "C", "B", "A-", "A", "A+"]);
    assert!(GradeLetter::ALL.is_sorted());
    for letter in GradeLetter::ALL {
        assert_eq!(GradeLetter::named(letter.name()), Some(letter));
    }
    assert_eq!(GradeLetter::named("E"), None);
}

#[test]
fn what_was_not_seen_may_still_happen_so_often() {
    for (trials, expected) in [(0, 1.0), (1, 0.95), (2, 0.776), (30, 0.095), (1_000, 0.002_991)] {
        let bound = unseen_rate_max(trials);
        assert!((bound - expected).abs() < 0.001, "{trials}: {bound}");
    }
    // The rule of three is its limit.
    assert!((unseen_rate_max(10_000) - 3.0 / 10_000.0).abs() < 1e-6);
    assert_eq!(unseen_text(30), "0 of 30 trials: < 9.5 % at 95 %");
    assert_eq!(unseen_text(1_000), "0 of 1,000 trials: < 0.299 % at 95 %");
    assert_eq!(unseen_text(1), "seen once");
}

#[test]
fn races_are_described_by_how_close_duplicates_came() {
    assert_eq!(RaceOverlap::of(&[]), None);
    let spreads: Vec<_> = (1..=100).rev().map(|step| Duration::from_micros(step * 10)).collect();
    let overlap = RaceOverlap::of(&spreads).expect("there were races");
    assert_eq!((overlap.races, overlap.at_once), (100, 20));
    assert_eq!(overlap.median, Duration::from_micros(500));
    assert_eq!(overlap.p95, Duration::from_micros(950));
    let one = RaceOverlap::of(&[Duration::from_micros(200)]).expect("there was a race");
    assert_eq!((one.at_once, one.median, one.p95), (1, one.p95, Duration::from_micros(200)));
}
