//! The document: read back as it was written, bounded, and continued.

use bytes::Bytes;
use hapax_examine::{
    ControlVerdict, DefectClass, EndDocument, ExaminationRecord, GradeDocument, OracleLevel,
    ProbeVerdict, ReportDocument, ReportFault,
};

use super::{WHEN, answer, api, defect, exchange, probe, record, report};
use crate::grade::flawless;

#[test]
fn a_report_is_read_back_as_it_was_written() {
    for record in [record(), flawless(), refuted()] {
        let report = ReportDocument::of(&record, &api(), WHEN);
        let read = ReportDocument::read(&report.to_json().unwrap()).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.basis(), record.basis());
        assert_eq!(read.exit(), record.exit());
    }
}

fn refuted() -> ExaminationRecord {
    let mut record = flawless();
    record.probes.clear();
    record.controls[0].verdict = ControlVerdict::Refuted("one effect for two keys".to_owned());
    record
}

#[test]
fn what_is_no_report_is_refused_by_name() {
    let json = report().to_json().unwrap();
    let other = json.replace("hapax-verify/1", "hapax-verify/2");
    assert!(
        matches!(ReportDocument::read(&other), Err(ReportFault::Format { found }) if found == "hapax-verify/2")
    );
    let grade = json.replace("\"letter\": \"F\"", "\"letter\": \"E\"");
    for damaged in ["", "{}", &json[..json.len() / 2], &grade] {
        assert!(matches!(ReportDocument::read(damaged), Err(ReportFault::Unreadable(_))));
    }
}

#[test]
fn long_bodies_are_shortened_and_say_how_long_they_were() {
    let long = "ä".repeat(600_000);
    let large = probe(
        "V28",
        ProbeVerdict::Pass { trials: 1 },
        vec![exchange(1, "first", (0, 9), answer(201, long))],
    );
    let record = ExaminationRecord { probes: vec![large], ..flawless() };
    let report = ReportDocument::of(&record, &api(), WHEN);
    let EndDocument::Answered { answer, .. } = &report.probes[0].exchanges[0].end else {
        unreachable!("it was answered");
    };
    assert!(answer.is_shortened && !answer.is_escaped);
    assert_eq!((answer.body.len(), answer.body_bytes), (16 * 1024, 1_200_000));
    assert!(!report.probes[0].exchanges[0].request.is_shortened);
}

#[test]
fn bytes_that_are_no_text_are_written_out() {
    let body = Bytes::from_static(b"caf\xe9 \x1b[31mred\0 \xe2\x80\xaeturned");
    let mut strange = exchange(1, "first", (0, 9), answer(201, body));
    strange.request = Bytes::from_static(b"POST / HTTP/1.1\r\nIdempotency-Key: a\rb\r\n\r\n");
    let strange = probe("V20", ProbeVerdict::Pass { trials: 1 }, vec![strange]);
    let record = ExaminationRecord { probes: vec![strange], ..flawless() };
    let report = ReportDocument::of(&record, &api(), WHEN);
    let exchange = &report.probes[0].exchanges[0];
    assert_eq!(exchange.request.head, "POST / HTTP/1.1\nIdempotency-Key: a\\x0db");
    assert!(exchange.request.is_escaped);
    let received = exchange.received().unwrap();
    assert_eq!(received.body, "caf\\xe9 \\x1b[31mred\\x00 \\u{202e}turned");
}

#[test]
fn an_interrupted_run_is_continued_and_graded_as_one() {
    let mut first = record();
    let rest = first.probes.split_off(2);
    let mut second = ExaminationRecord { seed: 8, probes: rest, ..flawless() };
    second.probes.push(probe("V01", ProbeVerdict::inconclusive("interrupted"), Vec::new()));
    let earlier = ReportDocument::of(&first, &api(), WHEN);
    let later = ReportDocument::of(&second, &api(), WHEN);
    let whole = later.continuing(earlier.clone()).unwrap();
    let ids: Vec<_> = whole.probes.iter().map(|probe| probe.id.as_str()).collect();
    assert_eq!(ids, ["V01", "V02", "V03", "V04", "V12", "V23"]);
    assert!(matches!(&whole.grade, GradeDocument::Graded { letter, .. } if letter.name() == "F"));
    // What was probed again is known from then on; each probe is repeated by its own seed.
    assert_eq!(whole.coverage.conclusive, 3);
    assert!(whole.probes[1].replay.contains("--replay 7 "), "{}", whole.probes[1].replay);
    assert!(whole.probes[5].replay.contains("--replay 8 "), "{}", whole.probes[5].replay);
    assert_eq!(whole.operations, 24);

    let mut elsewhere = api();
    elsewhere.path = "/orders".to_owned();
    let other = ReportDocument::of(&second, &elsewhere, WHEN);
    let fault = other.continuing(earlier).unwrap_err().to_string();
    assert!(fault.contains("/payments") && fault.contains("/orders"), "{fault}");
}

#[test]
fn what_was_not_counted_at_first_is_not_proven_later() {
    let first = ExaminationRecord { oracle: OracleLevel::Names, ..flawless() };
    let earlier = ReportDocument::of(&first, &api(), WHEN);
    let later =
        ReportDocument::of(&ExaminationRecord { probes: Vec::new(), ..flawless() }, &api(), WHEN);
    let whole = later.continuing(earlier).unwrap();
    assert!(matches!(whole.grade, GradeDocument::Graded { effects_unproven: true, .. }));
}

#[test]
fn findings_come_with_the_worst_first() {
    let defects = vec![
        defect(DefectClass::Hygiene, "no Retry-After", &[]),
        defect(DefectClass::Contract, "other bytes", &[]),
    ];
    let late = probe("V27", ProbeVerdict::Fail { trials: 1, defects }, Vec::new());
    let mut record = record();
    record.probes.push(late);
    let report = ReportDocument::of(&record, &api(), WHEN);
    let classes: Vec<_> = report.findings().iter().map(|(_, one)| one.class.clone()).collect();
    assert_eq!(classes, ["S0", "S1", "S2", "S3", "S3"]);
}

#[test]
fn races_say_how_many_came_how_close() {
    let report = report();
    let races = report.probes.iter().find(|probe| probe.id == "V02").unwrap().races.unwrap();
    assert_eq!((races.trials, races.duplicates, races.at_once), (30, 3, 20));
    assert_eq!((races.median_micros, races.p95_micros), (150, 290));
}
