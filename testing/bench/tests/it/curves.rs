use std::fs;

use serde_json::Value;

use crate::{bench, postgres_url, text};

const TINY: &[&str] = &["curves", "--quick", "--seconds", "0.5", "--keys-max", "2000"];

fn curves(which: &[&str]) -> (String, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let output = bench(&[TINY, which, &["--json", file.to_str().unwrap()]].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    assert!(!report.contains("INVALID"), "{report}");
    (report, serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap())
}

#[test]
fn stores_with_keys_put_in_by_sql_serve_retries_and_purge_what_is_past_retention() {
    let url = postgres_url();
    let parts = ["--parts", "keys,duplicates,retention", "--postgres", &url];
    let (report, json) = curves(&parts);
    for part in [
        "SQLite, hapax: requests/s with the most keys, against the fewest",
        "PostgreSQL, hapax: requests/s with the most keys, against the fewest",
        "Retries of 10,000 finished requests",
        "requests/s while purging, against nothing to purge",
        "records purged in each measurement",
    ] {
        assert!(report.contains(part), "no {part:?} in:\n{report}");
    }
    assert_eq!(json["sections"].as_array().unwrap().len(), 4);
}

#[test]
fn a_curve_has_a_line_for_each_way_and_a_plot_of_rates_and_one_of_latencies() {
    let (_, json) = curves(&["--parts", "callers,body", "--stores", "sqlite"]);
    let sections = json["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 2);
    for section in sections {
        let plots = section["plots"].as_array().unwrap();
        let titles: Vec<_> = plots.iter().map(|plot| plot["y"]["name"].as_str().unwrap()).collect();
        assert_eq!(titles, ["requests/s", "p99 ms"]);
        for plot in plots {
            let names = plot["series"].as_array().unwrap().iter().map(|series| &series["name"]);
            assert!(names.eq(["SQLite, hand-written", "SQLite, hapax"]));
        }
    }
}
