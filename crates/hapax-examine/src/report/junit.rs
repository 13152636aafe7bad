//! The report as JUnit's XML: a test case for each probe.

use super::{
    document::{ControlOutcome, GradeDocument, ProbeDocument, ReportDocument, VerdictDocument},
    summary::{coverage_text, exchange_text, letter_text, meaning, worth},
    text::markup,
};

/// A suite of all probes: what was found fails, what came to no conclusion is skipped, and a control that is refuted
/// is an error.
pub fn render_junit(report: &ReportDocument) -> String {
    let refuted: Vec<_> =
        report.controls.iter().filter(|one| one.verdict == ControlOutcome::Refuted).collect();
    let is_withheld = matches!(report.grade, GradeDocument::NotGraded { .. });
    // A suite without errors would be taken for one that passed.
    let errors = usize::from(is_withheld);
    let count = |is: fn(&VerdictDocument) -> bool| {
        report.probes.iter().filter(|probe| is(&probe.verdict)).count()
    };
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{errors}\" skipped=\"{}\" time=\"{}\"",
        report.probes.len() + errors,
        count(|verdict| matches!(verdict, VerdictDocument::Fail { .. })),
        count(|verdict| matches!(verdict, VerdictDocument::Inconclusive { .. })),
        seconds(report.took_micros)
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"hapax verify\" {counts}>\n\
         <testsuite name=\"{}\" {counts}>\n<properties>\n",
        markup(&report.target.describe())
    );
    let properties = [
        ("grade", letter_text(&report.grade).to_owned()),
        ("coverage", coverage_text(report)),
        ("oracle", report.oracle.level.name().to_owned()),
        ("seed", report.seed.clone()),
        ("when", report.when.clone()),
    ];
    for (name, value) in properties {
        xml.push_str(&format!("<property name=\"{name}\" value=\"{}\"/>\n", markup(&value)));
    }
    xml.push_str("</properties>\n");
    if is_withheld {
        let texts = refuted.iter().map(|control| format!("{} {}", control.id, control.text));
        let text = texts.collect::<Vec<_>>().join("\n");
        xml.push_str(&format!(
            "<testcase classname=\"hapax.verify\" name=\"controls\" time=\"0\">\
             <error message=\"{}\" type=\"not-graded\">{}</error></testcase>\n",
            markup(&meaning(report)),
            markup(&text)
        ));
    }
    for probe in &report.probes {
        xml.push_str(&case(probe));
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

fn case(probe: &ProbeDocument) -> String {
    let name = markup(&format!("{} {}", probe.id, probe.name));
    let time = seconds(probe.took_micros);
    let content = match &probe.verdict {
        VerdictDocument::Pass { trials } => {
            format!("<system-out>{}</system-out>", markup(&worth(probe, *trials)))
        }
        VerdictDocument::Inconclusive { reason, .. } => {
            format!("<skipped message=\"{}\"/>", markup(reason))
        }
        VerdictDocument::Fail { .. } => failure(probe),
    };
    format!(
        "<testcase classname=\"hapax.verify\" name=\"{name}\" time=\"{time}\">{content}</testcase>\n"
    )
}

/// All that is wrong: a test case has one failure.
fn failure(probe: &ProbeDocument) -> String {
    let classes: Vec<_> = probe.defects().iter().map(|defect| defect.class.as_str()).collect();
    let sentences: Vec<_> = probe.defects().iter().map(|defect| defect.sentence.as_str()).collect();
    let mut text = String::new();
    for defect in probe.defects() {
        text.push_str(&format!("{}: {}\n", defect.class, defect.sentence));
        for exchange in probe.shown_by(defect) {
            text.push_str(&format!("  {}\n", exchange_text(exchange)));
        }
        text.push_str(&format!(
            "What to do: {}\nTo send the same again: {}\n{}",
            defect.advice, probe.replay, defect.reproducer
        ));
    }
    format!(
        "<failure message=\"{}\" type=\"{}\">{}</failure>",
        markup(&sentences.join("; ")),
        markup(&classes.join(" ")),
        markup(&text)
    )
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
