//! The rules people load into Prometheus, judged by Prometheus' own tool.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use hapax_services::prometheus::promtool;

use super::{IMPATIENT, Scrape, scrape::Selector, slow_upstream, time_out};
use crate::{
    text,
    world::{Setup, free_address, until},
};

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(document(name)).unwrap()
}

/// Runs `promtool` in the directory of the documents; what it says if it is not content.
fn judge(args: &[&str]) -> Result<(), String> {
    let tool = promtool().unwrap();
    let output = Command::new(tool).args(args).current_dir(document("")).output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

/// What stands behind this word at the beginning of lines.
fn values<'a>(yaml: &'a str, word: &str) -> Vec<&'a str> {
    yaml.lines()
        .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix(word))
        .collect()
}

/// Every series of ours that rules read.
fn selectors(rules: &str) -> BTreeSet<Selector> {
    let expressions = rules.lines().filter(|line| !line.trim().starts_with('#'));
    // What is said to people may name a metric, too, in quotes of its own.
    let expressions = expressions.filter(|line| !line.contains('`')).collect::<Vec<_>>().join("\n");
    let found = expressions.match_indices("hapax_").map(|(at, _)| {
        let rest = &expressions[at..];
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let labels = match rest[end..].strip_prefix('{').and_then(|more| more.find('}')) {
            Some(len) => &rest[end..end + len + 2],
            None => "",
        };
        Selector::parse(&format!("{}{labels}", &rest[..end]))
    });
    found.collect()
}

#[test]
fn the_rules_are_good_and_every_alert_fires_when_it_should_and_not_when_all_is_well() {
    judge(&["check", "rules", "alerts.yml"]).unwrap();
    judge(&["test", "rules", "alerts_test.yml"]).unwrap();
    let (rules, tests) = (read("alerts.yml"), read("alerts_test.yml"));
    let alerts = values(&rules, "alert: ");
    assert!(alerts.len() > 5, "{alerts:?}");
    let metrics = read("metrics.md");
    for alert in alerts {
        let fires = tests.split("- eval_time:").any(|test| {
            test.contains(&format!("alertname: {alert}\n")) && test.contains("exp_labels")
        });
        assert!(fires, "no test shows {alert} firing");
        let is_quiet = tests.contains(&format!("{{ eval_time: 90m, alertname: {alert} }}"));
        assert!(is_quiet, "no test shows {alert} quiet");
        assert!(metrics.contains(&format!("| `{alert}` |")), "docs/metrics.md explains {alert}");
    }
}

#[test]
fn a_metric_that_is_called_otherwise_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let rules = read("alerts.yml").replace("hapax_keys_in_doubt)", "hapax_doubtful_keys)");
    fs::write(directory.path().join("alerts.yml"), rules).unwrap();
    let tests = directory.path().join("alerts_test.yml");
    fs::write(&tests, read("alerts_test.yml")).unwrap();
    let said = judge(&["test", "rules", tests.to_str().unwrap()]).unwrap_err();
    assert!(said.contains("HapaxKeysInDoubt"), "{said}");
}

#[tokio::test]
async fn the_rules_read_what_a_running_gateway_shows_and_a_key_in_doubt_fires() {
    let upstream = slow_upstream().await;
    let relay = format!(
        "{IMPATIENT}[[relay]]\nname = \"billing\"\nto = \"http://{}/events\"\nsecret_file = \"secret\"\n",
        free_address()
    );
    let setup = Setup::new(upstream.address).config(&relay);
    let gateway = setup.file("secret", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").start().await;
    time_out(&gateway, "k").await;
    let in_doubt = r#"hapax_keys_in_doubt{route="POST /pay",age="under_1m"}"#;
    until("the doubt to be seen", async || {
        Scrape::of(&gateway).await.value(in_doubt) == Some("1".to_owned())
    })
    .await;
    let page = Scrape::of(&gateway).await;
    let rules = read("alerts.yml");
    let read_by_rules = selectors(&rules);
    assert!(read_by_rules.len() > 8, "{read_by_rules:?}");
    for selector in &read_by_rules {
        assert!(page.has(selector), "the rules read {selector:?}, which no gateway shows");
    }
    let tests = read("alerts_test.yml");
    let made_up = values(&tests, "series: ").into_iter().map(|series| series.trim_matches('\''));
    for series in made_up.filter(|series| !series.starts_with("up{")) {
        let selector = Selector::parse(series).into_scraped();
        assert!(page.has_shape(&selector), "the tests make up {series}, which no gateway shows");
    }
    fires_on(&page, "HapaxKeysInDoubt", "POST /pay");
}

/// Has Prometheus read this page for ten minutes, and expects this alert of this route.
fn fires_on(page: &Scrape, alert: &str, route: &str) {
    let series: String = page
        .samples()
        .filter(|(series, _)| !series.contains("_bucket"))
        .map(|(series, value)| {
            format!("      - series: '{series}'\n        values: '{value}x10'\n")
        })
        .collect();
    let test = format!(
        "rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    \
         input_series:\n{series}    promql_expr_test:\n      - expr: ALERTS{{alertname=\"{alert}\",\
         alertstate=\"firing\"}}\n        eval_time: 5m\n        exp_samples:\n          - labels: \
         'ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",route=\"{route}\",\
         severity=\"warning\"}}'\n            value: 1\n"
    );
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("alerts.yml"), read("alerts.yml")).unwrap();
    let file = directory.path().join("scraped_test.yml");
    fs::write(&file, &test).unwrap();
    let judged = judge(&["test", "rules", file.to_str().unwrap()]);
    assert_eq!(judged, Ok(()), "on what was scraped:\n{test}");
}
