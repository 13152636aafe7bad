//! `hapax plan`, and whether what it computes with is so.

mod room;

use std::fs;

use serde_json::Value;

use crate::{hapax, text};

fn plan(args: &[&str]) -> Value {
    let output = hapax(&[&["plan", "--json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn forecast<'a>(plan: &'a Value, store: &str) -> &'a Value {
    let stores = plan["stores"].as_array().unwrap();
    &stores.iter().find(|of| of["store"] == store).unwrap()["forecasts"][0]
}

#[test]
fn a_plan_says_what_is_needed_and_from_what_it_was_computed() {
    let planned = plan(&["--rate", "100/s", "--retention", "24h"]);
    for store in ["sqlite", "postgres"] {
        assert_eq!(forecast(&planned, store)["keys"], 8_640_000.0);
        assert_eq!(forecast(&planned, store)["cost_per_million"], Value::Null);
    }
    assert_eq!(forecast(&planned, "sqlite")["server_cores"], Value::Null);
    assert_eq!(forecast(&planned, "postgres")["connections"], 5);
    assert!(planned["measured_on"].as_str().unwrap().contains("cores"));
    let told = hapax(&["plan", "--rate", "100/s", "--disk", "0.10/GB-month"]);
    let told = text(&told.stdout);
    for words in ["8,640,000", "Measured on", "cargo xtask bench store", "SQLite is enough"] {
        assert!(told.contains(words), "no {words:?} in:\n{told}");
    }
}

#[test]
fn a_million_requests_cost_what_their_disk_and_cores_cost() {
    // A month has 730 hours: what is kept for that long is paid for once.
    let prices = ["--disk", "0.10/GB-month", "--cpu", "0.05/core-hour"];
    let planned = plan(&[&["--rate", "100/s", "--retention", "730h"], &prices[..]].concat());
    for store in ["sqlite", "postgres"] {
        let figure = |name: &str| forecast(&planned, store)[name].as_f64();
        let of = |name: &str| figure(name).unwrap_or_default();
        let gigabytes = of("disk_bytes") / of("keys") * 1e6 / 1e9;
        let core_hours =
            (of("gateway_cores") + of("server_cores")) / of("peak_per_second") * 1e6 / 3600.0;
        let cost = figure("cost_per_million").unwrap();
        let expected = gigabytes * 0.10 + core_hours * 0.05;
        assert!((cost - expected).abs() < 1e-9, "{store}: {cost} is not {expected}");
        assert!(gigabytes > 0.1 && core_hours > 0.01, "{:#}", forecast(&planned, store));
    }
}

#[test]
fn a_window_that_is_shorter_than_clients_try_is_refused_with_a_better_one() {
    let short = ["plan", "--rate", "100/s", "--retention", "24h", "--client-retries-for", "72h"];
    let output = hapax(&short);
    assert_eq!(output.status.code(), Some(1));
    let refusal = text(&output.stderr);
    assert!(refusal.contains("--retention 216h"), "{refusal}");
    let near = plan(&["--rate", "100/s", "--retention", "100h", "--client-retries-for", "72h"]);
    assert!(near["advice"][0].as_str().unwrap().contains("--retention 216h"), "{near:#}");
    let enough = plan(&["--rate", "100/s", "--retention", "9d", "--client-retries-for", "72h"]);
    assert!(enough["advice"][0].as_str().unwrap().ends_with("enough."), "{enough:#}");
}

#[test]
fn growth_is_looked_ahead_to_with_what_ends_first_and_a_page_with_plots() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("plan.html");
    let args = ["--rate", "100/s", "--growth", "5%/month", "--html", page.to_str().unwrap()];
    let planned = plan(&args);
    let sqlite = &planned["stores"][0];
    let months: Vec<_> =
        sqlite["forecasts"].as_array().unwrap().iter().map(|at| &at["month"]).collect();
    assert_eq!(months, [0, 6, 12, 24, 36]);
    let first = &sqlite["limits"][0];
    assert!(first["what"].as_str().unwrap().starts_with("keys"), "{first}");
    assert!(first["month"].as_f64().unwrap() > 0.0, "{first}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("months from now"), "no plot on the page");
    assert!(!page.contains("src=") && !page.contains("<script"), "it needs nothing else");
}

#[test]
fn a_second_gateway_and_a_high_peak_ask_for_postgresql() {
    for more in [["--gateways", "2"], ["--peak", "50000/s"]] {
        let planned = plan(&[&["--rate", "100/s"], &more[..]].concat());
        let advice = planned["advice"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(advice.contains("PostgreSQL") && !advice.contains("enough"), "{advice}");
    }
}

#[test]
fn what_means_nothing_is_refused_with_what_to_write() {
    for (args, words) in [
        (&["plan"][..], "--rate"),
        (&["plan", "--rate", "100"], "100/s"),
        (&["plan", "--rate", "1/s", "--growth", "5"], "5%/month"),
        (&["plan", "--rate", "1/s", "--disk", "0.10"], "0.10/GB-month"),
        (&["plan", "--rate", "1/s", "--answer", "1GiB"], "16MiB"),
    ] {
        let output = hapax(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    }
}
