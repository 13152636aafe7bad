use std::fs;

use serde_json::Value;

use crate::{bench, text};

const TINY: &[&str] =
    &["http", "--quick", "--rounds", "1", "--seconds", "0.05", "--connections", "4,16"];

#[test]
fn every_way_over_http_has_one_effect_for_each_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let ways = ["--ways", "direct,unprotected,sqlite,replay", "--json", file.to_str().unwrap()];
    let output = bench(&[TINY, &ways].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    assert!(!report.contains("INVALID"), "{report}");

    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["valid"], true);
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 2);
    for (section, connections) in sections.iter().zip([4, 16]) {
        assert_eq!(section["data"]["connections"], connections);
        let ways = section["data"]["ways"].as_object().unwrap();
        assert_eq!(ways.len(), 4);
        for (way, samples) in ways {
            let samples = samples.as_array().unwrap();
            assert_eq!(samples.len(), 1, "{way}");
            for sample in samples {
                assert!(sample["requests_per_second"].as_f64() > Some(0.0), "{way}: {sample}");
                assert!(sample["open_loop"]["p99_ms"].as_f64() > Some(0.0), "{way}: {sample}");
                assert_eq!(sample["proxy_cpu_us_per_request"].is_null(), way == "direct");
            }
        }
        assert!(section["claims"].as_array().is_some_and(|claims| !claims.is_empty()));
    }
}

#[test]
fn memory_is_another_run_than_speed() {
    for speed in ["--quick", "--ways=direct", "--rounds=1", "--connections=8"] {
        let output = bench(&["http", "--memory", speed]);
        assert_eq!(output.status.code(), Some(2), "{speed}");
    }
}
