//! What is new since another report.

use hapax_examine::{
    BaselineComparison, DefectClass, ExaminationExit, ExaminationRecord, ProbeVerdict,
    ReportDocument,
};

use super::{WHEN, api, defect, probe};
use crate::grade::flawless;

fn found(class: DefectClass, sentence: &str) -> ProbeVerdict {
    ProbeVerdict::Fail { trials: 1, defects: vec![defect(class, sentence, &[])] }
}

fn report(verdicts: &[(&str, ProbeVerdict)]) -> ReportDocument {
    let probes =
        verdicts.iter().map(|(id, verdict)| probe(id, verdict.clone(), Vec::new())).collect();
    ReportDocument::of(&ExaminationRecord { probes, ..flawless() }, &api(), WHEN)
}

fn counts(comparison: &BaselineComparison) -> [usize; 4] {
    let BaselineComparison { new, unchanged, gone, unknown, .. } = comparison;
    [new.len(), unchanged.len(), gone.len(), unknown.len()]
}

#[test]
fn a_finding_is_known_again_whatever_its_numbers() {
    use DefectClass::{Contract, Safety};
    let before = "one key had 2 effects: 50 requests were answered with 201, 409";
    let now = "one key had 13 effects: 8 requests were answered with 201";
    let cases = [
        (found(Safety, before), found(Safety, now), [0, 1, 0, 0]),
        (
            found(Safety, "`hpx-0000abcd-3` was lost"),
            found(Safety, "`hpx-ffff0001-9` was lost"),
            [0, 1, 0, 0],
        ),
        (found(Safety, before), found(Contract, now), [1, 0, 1, 0]),
        (found(Safety, before), found(Safety, "its effect is not there"), [1, 0, 1, 0]),
        (found(Safety, before), ProbeVerdict::Pass { trials: 9 }, [0, 0, 1, 0]),
        (found(Safety, before), ProbeVerdict::inconclusive("no overlap"), [0, 0, 0, 1]),
        (ProbeVerdict::Pass { trials: 9 }, found(Safety, now), [1, 0, 0, 0]),
    ];
    let other = ("V01", ProbeVerdict::Pass { trials: 1 });
    for (before, now, expected) in cases {
        let before = report(&[other.clone(), ("V02", before)]);
        let now = report(&[other.clone(), ("V02", now)]);
        let comparison = BaselineComparison::of(&now, &before);
        assert_eq!(counts(&comparison), expected, "{comparison:?}");
        let exit = match expected {
            [0, _, _, 0] => ExaminationExit::Clean,
            [0, _, _, _] => ExaminationExit::Inconclusive,
            [_, _, _, _] => ExaminationExit::Findings,
        };
        assert_eq!(comparison.exit, exit, "{comparison:?}");
    }
}

#[test]
fn a_finding_of_another_probe_is_new() {
    let sentence = "one key had 2 effects";
    let before = report(&[("V02", found(DefectClass::Safety, sentence))]);
    let now = report(&[("V03", found(DefectClass::Safety, sentence))]);
    let comparison = BaselineComparison::of(&now, &before);
    // Nobody asked V02 again.
    assert_eq!(counts(&comparison), [1, 0, 0, 1]);
    let text = comparison.text();
    assert!(text.contains("New: 1\n  S0 V03: one key had 2 effects\n"), "{text}");
    assert!(text.contains("Unknown now: 1\n  S0 V02: one key had 2 effects\n"), "{text}");
}

#[test]
fn what_is_not_graded_has_nothing_new_and_is_no_pass() {
    let before = report(&[("V02", ProbeVerdict::Pass { trials: 1 })]);
    let now = report(&[]);
    let comparison = BaselineComparison::of(&now, &before);
    assert_eq!((counts(&comparison), comparison.exit.code()), ([0, 0, 0, 0], 3));
}
