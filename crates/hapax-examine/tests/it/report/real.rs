//! Reports on servers that are known.

use std::sync::{Arc, atomic::AtomicBool};

use hapax_examine::{
    DefectClass, GradeDocument, ReportDocument, TerminalColour, VerdictDocument, render_html,
    render_terminal,
};
use hapax_zoo::Species;

use super::WHEN;
use crate::zoo::examination;

async fn reported(name: &str) -> ReportDocument {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let examination = Arc::new(examination(&running, &["V01"]));
    let api = examination.api.clone();
    let record = examination.run(Vec::new(), Arc::new(AtomicBool::new(false)), |_| {}).await;
    ReportDocument::of(&record.unwrap(), &api, WHEN)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_idempotency_gets_an_f_and_is_told_why() {
    let report = reported("no-idempotency").await;
    let GradeDocument::Graded { letter, .. } = &report.grade else {
        unreachable!("it is graded: {report:?}")
    };
    assert_eq!((*letter, report.exit().code()), (DefectClass::Safety.at_most(), 1));
    let (probe, defect) = report.findings()[0];
    assert_eq!((probe.id.as_str(), defect.class.as_str()), ("V01", "S0"));
    assert_eq!(probe.shown_by(defect).len(), 2);
    for form in [render_terminal(&report, TerminalColour::Plain), render_html(&report)] {
        assert!(form.contains("ne key had 2 effects"), "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_server_gets_no_more_than_what_one_probe_can_say() {
    let report = reported("honest").await;
    assert!(matches!(report.probes[0].verdict, VerdictDocument::Pass { .. }), "{report:?}");
    let GradeDocument::Graded { letter, wanting, .. } = &report.grade else {
        unreachable!("it is graded: {report:?}")
    };
    assert_eq!((letter.name(), report.coverage.conclusive), ("B", 1));
    assert!(wanting[0].contains("V02, V03"), "{wanting:?}");
    assert_eq!(report.exit().code(), 0);
}
