//! Reports in files, and what they are compared with.

use serde_json::Value;

use super::{Verifier, started};

#[tokio::test(flavor = "multi_thread")]
async fn every_report_that_was_asked_for_is_written_without_secrets() {
    let (_running, url) = started("no-idempotency").await;
    let verifier = Verifier::new();
    let files = ["report.json", "report.html", "report.xml", "report.sarif", "badge.svg"];
    let options = ["--json-report", "--html", "--junit", "--sarif", "--badge"];
    let mut more = vec!["--only", "V01"];
    more.extend(options.iter().zip(files).flat_map(|(option, file)| [*option, file]));
    let ended = verifier.examine(&url, &more);
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    for file in files {
        let text = verifier.read(file);
        assert!(!text.contains("alice"), "{file}: {text}");
    }
    for file in ["report.json", "report.sarif"] {
        assert!(serde_json::from_str::<Value>(&verifier.read(file)).is_ok(), "{file}");
    }
    assert!(verifier.read("report.html").contains("one key had"));
    assert!(verifier.read("report.xml").contains("retry-after-success"));
    assert!(verifier.read("badge.svg").starts_with("<svg"));

    let compared = verifier.examine(&url, &["--only", "V01", "--compare", "report.json"]);
    assert_eq!(compared.exit, Some(0), "{compared:?}");
    assert!(compared.out.contains("New: 0"), "{compared:?}");
    let (_honest, url) = started("honest").await;
    let compared = verifier.examine(&url, &["--only", "V01", "--compare", "report.json"]);
    assert_eq!(compared.exit, Some(0), "{compared:?}");
    assert!(compared.out.contains("New: 0"), "{compared:?}");
}
