//! Simulations, as people run them. Time is simulated, so nothing here takes long.

use std::{fs, sync::LazyLock};

use crate::{hapax, text};

/// Runs a simulation that is expected to go well.
fn simulate(args: &[&str]) -> String {
    let output = hapax(&[&["simulate"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The figures of the first row with this name, after this title.
fn figures(report: &str, title: &str, row: &str) -> Vec<String> {
    let (_, section) = report.split_once(title).unwrap();
    let mut rows = section.lines().filter_map(|line| line.trim().strip_prefix(row));
    let row = rows.find(|rest| rest.starts_with("  ")).unwrap();
    row.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
}

fn numbers(report: &str, title: &str, row: &str) -> Vec<f64> {
    let cells = figures(report, title, row);
    cells.iter().map(|cell| cell.replace(',', "").parse().unwrap()).collect()
}

/// What several tests look at.
static STORM: LazyLock<String> = LazyLock::new(|| simulate(&["storm"]));

const OUTAGE: &str = "An outage below layers that retry";
const HERD: &str = "A herd";
const RECOVERY: &str = "Recovery";

#[test]
fn the_same_seed_is_the_same_run_to_the_byte_and_another_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let run = |task: &str, seed: &str, name: &str| {
        let files = ["svg", "html"].map(|end| directory.path().join(format!("{name}.{end}")));
        let [svg, html] = files.each_ref().map(|file| file.to_str().unwrap());
        let mut args = vec![task, "--seed", seed, "--svg", svg, "--html", html];
        if task == "backoff" {
            args.extend(["--clients", "10,30", "--runs", "5"]);
        }
        let report = simulate(&args);
        [report.into_bytes(), fs::read(svg).unwrap(), fs::read(html).unwrap()]
    };
    for task in ["backoff", "storm"] {
        let first = run(task, "7", "first");
        assert!(first == run(task, "7", "again"), "{task}");
        for (one, other) in first.iter().zip(&run(task, "8", "other")) {
            assert!(one != other, "{task}");
        }
    }
}

#[test]
fn jitter_does_less_work_than_pauses_without_it() {
    let report = simulate(&["backoff", "--clients", "100", "--runs", "20"]);
    let calls = numbers(&report, "Calls until", "100");
    let [none, exponential, equal, full, decorrelated] = calls[..] else {
        panic!("{report}");
    };
    assert!(none > exponential && exponential > 2.0 * full, "{report}");
    assert!(full < decorrelated && equal < decorrelated, "{report}");
    let millis = numbers(&report, "Milliseconds until", "100");
    assert!(millis[1] > 10.0 * millis[3], "{report}");
}

#[test]
fn contention_is_what_the_published_simulation_found() {
    let report = simulate(&["backoff", "--clients", "100"]);
    let published = [
        ("Calls until", [2424.0, 1852.0, 812.0, 796.0, 999.0]),
        ("Milliseconds until", [2024.0, 63_513.0, 6605.0, 4940.0, 4698.0]),
    ];
    for (title, expected) in published {
        for (found, expected) in numbers(&report, title, "100").into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.05, "{found} is not {expected}: {report}");
        }
    }
}

#[test]
fn layers_that_retry_multiply_an_outage_and_care_does_not() {
    let report = STORM.as_str();
    let calls = |way| {
        let cells = numbers(report, OUTAGE, way);
        (cells[0], cells[1])
    };
    assert_eq!(calls("every layer retries"), (81.0, 81.0));
    assert_eq!(calls("one layer retries"), (3.0, 3.0));
    let (refused, hanging) = calls("shrinking deadlines");
    assert!(refused == 81.0 && hanging == 3.0, "{report}");
    let (refused, hanging) = calls("a budget in every layer");
    assert!(refused < 1.6 && hanging < 1.6, "{report}");
    let (refused, hanging) = calls("one layer, with a budget");
    assert!(refused < 1.2 && hanging < 1.2, "{report}");
    let (refused, hanging) = calls("a breaker in every layer");
    assert!(refused < 0.2 && hanging < 0.2, "{report}");
}

#[test]
fn the_pile_is_as_deep_as_asked_for() {
    let report = simulate(&["storm", "--layers", "2", "--attempts", "5"]);
    assert_eq!(numbers(&report, OUTAGE, "every layer retries")[0], 25.0);
}

#[test]
fn a_herd_without_jitter_comes_back_at_once() {
    let report = STORM.as_str();
    let busiest = |way| numbers(report, HERD, way)[0];
    assert!(busiest("no jitter") > 800.0, "{report}");
    for way in ["equal jitter", "full jitter", "decorrelated jitter"] {
        assert!(busiest(way) < 300.0, "{report}");
        assert_eq!(numbers(report, HERD, way)[3], 0.0, "{report}");
    }
}

#[test]
fn retries_keep_a_service_down_that_would_recover_without_them() {
    let report = STORM.as_str();
    let after = |way| {
        let cell = figures(report, RECOVERY, way).swap_remove(0);
        cell.strip_suffix(" s").map(|seconds| seconds.parse::<u32>().unwrap())
    };
    assert_eq!(after("retries"), None, "{report}");
    assert!(after("no retries").is_some_and(|seconds| seconds < 30), "{report}");
    for way in ["with a budget", "with a breaker", "with both", "with all of these"] {
        assert!(after(way).is_some_and(|seconds| seconds < 60), "{report}");
    }
    assert!(after("with deadlines sent").is_some_and(|seconds| seconds < 5), "{report}");
}

#[test]
fn a_page_has_a_plot_for_every_table_and_needs_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("storm.html");
    simulate(&["storm", "--html", file.to_str().unwrap()]);
    let page = fs::read_to_string(&file).unwrap();
    assert_eq!(page.matches("<table>").count(), 3);
    assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<svg ").count(), 3);
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "").contains("http");
    assert!(!elsewhere, "{page}");
}

#[test]
fn help_shows_examples() {
    for task in ["backoff", "storm"] {
        let output = hapax(&["simulate", task, "--help"]);
        let help = text(&output.stdout);
        assert!(help.contains(&format!("Examples:\n  hapax simulate {task}\n")), "{help}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_with_what_to_do() {
    for (args, advice) in [
        (&["backoff", "--base", "0"][..], "give another --base or --cap"),
        (&["backoff", "--base", "50", "--cap", "10"], "give another --base or --cap"),
        (&["storm", "--layers", "6", "--attempts", "10"], "give fewer --layers or --attempts"),
        (&["storm", "--svg", "/nowhere/at/all.svg"], "name a file that can be written"),
    ] {
        let output = hapax(&[&["simulate"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(advice), "{args:?}: {}", text(&output.stderr));
    }
    for args in [
        &["storm", "--layers", "0"][..],
        &["backoff", "--runs", "0"],
        &["backoff", "--clients", "0"],
    ] {
        assert_eq!(hapax(&[&["simulate"], args].concat()).status.code(), Some(2), "{args:?}");
    }
}
