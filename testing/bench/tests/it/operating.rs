use std::fs;

use serde_json::Value;

use crate::{bench, text};

const TINY: &[&str] = &["operating", "--quick", "--rounds", "1"];

/// What a short run says, and its sections by title.
fn operating(told: &[&str]) -> (String, Vec<Value>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let output = bench(&[TINY, told, &["--json", file.to_str().unwrap()]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(!said.contains("INVALID"), "{said}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["valid"], true);
    (said, report["sections"].as_array().unwrap().clone())
}

/// The one measurement of a way.
fn sample<'a>(section: &'a Value, way: &str) -> &'a Value {
    let samples = section["data"]["ways"][way].as_array().unwrap();
    assert_eq!(samples.len(), 1, "{way}");
    &samples[0]
}

fn claims(section: &Value) -> usize {
    section["claims"].as_array().unwrap().len()
}

#[test]
fn a_gateway_tells_a_collector_of_one_request_in_a_hundred_by_either_protocol() {
    let (_, sections) = operating(&["--parts", "otlp", "--seconds", "1", "--rate", "300"]);
    let [section] = &sections[..] else { panic!("{sections:#?}") };
    let asked = section["data"]["asked_per_second"].as_f64().unwrap();
    assert!((1.0..=300.0).contains(&asked), "{asked}");
    for way in ["telemetry off", "OTLP over HTTP", "OTLP over gRPC"] {
        let sample = sample(section, way);
        assert!(sample["requests_per_second"].as_f64() > Some(0.0), "{way}: {sample}");
        assert!(sample["gateway_cpu_us_per_request"].as_f64() > Some(0.0), "{way}: {sample}");
        let told = sample["pushes_of_metrics_told"].as_u64() > Some(0);
        assert_eq!(told, way != "telemetry off", "{way}: {sample}");
    }
    assert_eq!(claims(section), 2);
}

#[test]
fn encryption_is_measured_on_sqlite_and_alone_and_nothing_is_readable_without_its_key() {
    let (said, sections) = operating(&["--parts", "encryption", "--seconds", "0.2"]);
    let [sqlite, alone] = &sections[..] else { panic!("{sections:#?}") };
    for way in ["clear", "encrypted"] {
        assert!(sample(sqlite, way)["cpu_us_per_request"].as_f64() > Some(0.0), "{sqlite}");
        let alone = sample(alone, way);
        assert!(alone["cpu_us_per_request"].as_f64() > Some(0.0), "{alone}");
        assert!(alone["cpu_us_per_replay"].as_f64() > Some(0.0), "{alone}");
    }
    assert_eq!((claims(sqlite), claims(alone)), (1, 2));
    assert!(said.contains("encrypted: more CPU per request than clear"), "{said}");
}

#[test]
fn ten_open_pages_are_told_what_goes_on_in_an_idle_gateway() {
    let (_, sections) = operating(&["--parts", "dashboard", "--idle", "2.5"]);
    let [section] = &sections[..] else { panic!("{sections:#?}") };
    assert!(sample(section, "nobody looks")["figures_told_to_each_page"].is_null());
    let open = sample(section, "open in ten browsers");
    assert!(open["figures_told_to_each_page"].as_u64() >= Some(1), "{open}");
    assert!(open["percent_of_a_core"].as_f64() >= Some(0.0), "{open}");
    assert_eq!(claims(section), 1);
}

#[test]
fn a_store_on_postgresql_is_measured_over_plain_and_over_encrypted_connections() {
    let (_, sections) = operating(&["--parts", "tls", "--seconds", "0.2"]);
    let [section] = &sections[..] else { panic!("{sections:#?}") };
    for way in ["sslmode=disable", "sslmode=require"] {
        let sample = sample(section, way);
        assert!(sample["requests_per_second"].as_f64() > Some(0.0), "{way}: {sample}");
        assert!(sample["server_cpu_us_per_request"].as_f64() > Some(0.0), "{way}: {sample}");
    }
    assert_eq!(claims(section), 1);
}

#[test]
fn a_part_that_needs_what_was_left_out_is_named_and_the_others_are_measured() {
    let parts = ["--parts", "tls,dashboard", "--idle", "0.1", "--postgres", "none"];
    let (said, sections) = operating(&parts);
    assert_eq!(sections.len(), 1);
    assert!(said.contains("TLS to PostgreSQL"), "{said}");
    assert!(said.contains("leave out --postgres none"), "{said}");
}
