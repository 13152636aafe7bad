//! The rules people load into Prometheus, judged by Prometheus' own tool.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::PathBuf, process::Command};

use hapax::{Event, sqlite};
use hapax_services::{faketime::FakeClock, prometheus::promtool};

use super::{IMPATIENT, Scrape, scrape::Selector, slow_upstream, time_out};
use crate::{
    hapax,
    relay::{Receiver, SECRET},
    text,
    world::{Setup, free_address, until},
};

pub(super) fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

pub(super) fn read(name: &str) -> String {
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

#[test]
fn every_alert_leads_to_a_section_of_the_runbook_that_is_there() {
    let (rules, runbook) = (read("alerts.yml"), read("runbook.md"));
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let anchors: BTreeSet<_> = headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect();
    let (alerts, places) = (values(&rules, "alert: "), values(&rules, "runbook_url: "));
    assert_eq!(alerts.len(), places.len(), "each alert has a runbook_url");
    for place in places {
        let anchor = place.strip_prefix("docs/runbook.md#").unwrap_or_default();
        assert!(anchors.contains(anchor), "there is no {place} among {anchors:?}");
    }
}

/// Two relays: one whose destination is away, and one whose destination refuses an event.
fn relays(refusing: &Receiver) -> String {
    let relay = |name: &str, to: SocketAddr| {
        format!(
            "[[relay]]\nname = \"{name}\"\nto = \"http://{to}/events\"\nsecret_file = \"secret\"\n"
        )
    };
    refusing.refuse("1");
    IMPATIENT.to_owned() + &relay("billing", free_address()) + &relay("mail", refusing.address)
}

#[tokio::test]
async fn the_rules_read_what_a_running_gateway_shows_and_fire_on_what_goes_wrong_there() {
    let (upstream, receiver) = (slow_upstream().await, Receiver::start().await);
    let directory = tempfile::tempdir().unwrap();
    // To this gateway, what was emitted now has been waiting for ten minutes.
    let clock = FakeClock::new(directory.path().join("clock")).unwrap();
    clock.set("+10m").unwrap();
    let setup = Setup::new(upstream.address).config(&relays(&receiver)).clock(&clock);
    let gateway = setup.file("secret", SECRET).start().await;
    let before = Scrape::of(&gateway).await;
    time_out(&gateway, "k").await;
    let store = rusqlite::Connection::open(gateway.store.trim_start_matches("sqlite:")).unwrap();
    sqlite::emit(&store, &Event::new("orders", "4711", "1").unwrap()).unwrap();
    let begun = hapax(&["quarantine", "begin", "--store", &gateway.store]);
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    for (series, value) in [
        (r#"hapax_keys_in_doubt{route="POST /pay",age="under_1m"}"#, "1"),
        (r#"hapax_outbox_parked_events{destination="mail"}"#, "1"),
        (r#"hapax_outbox_lag_events{destination="billing"}"#, "1"),
        ("hapax_store_quarantined", "1"),
    ] {
        let shown = async || Scrape::of(&gateway).await.value(series) == Some(value.to_owned());
        until(series, shown).await;
    }
    let page = Scrape::of(&gateway).await;
    reads_what_is_shown(&page);
    fire_on(
        &[before, page],
        &[
            ("HapaxKeysInDoubt", "route=\"POST /pay\",severity=\"warning\""),
            ("HapaxUnanswered", "route=\"POST /pay\",severity=\"warning\""),
            ("HapaxOutboxBehind", "destination=\"billing\",severity=\"warning\""),
            ("HapaxOutboxNeedsSomebody", "destination=\"mail\",severity=\"warning\""),
            ("HapaxStoreQuarantined", "severity=\"critical\""),
        ],
    );
}

/// Nothing is read by the rules, or made up by their tests, that no gateway shows.
fn reads_what_is_shown(page: &Scrape) {
    let rules = read("alerts.yml");
    let read_by_rules = selectors(&rules);
    assert!(read_by_rules.len() > 8, "{read_by_rules:?}");
    for selector in &read_by_rules {
        assert!(page.has(selector), "the rules read {selector:?}, which no gateway shows");
    }
    let tests = read("alerts_test.yml");
    let made_up = values(&tests, "series: ").into_iter().map(|series| series.trim_matches('\''));
    for series in made_up.filter(|series| !series.starts_with("up{")) {
        let selector = Selector::parse(series).scraped();
        assert!(page.has_shape(&selector), "the tests make up {series}, which no gateway shows");
    }
}

/// Has Prometheus read these pages a minute apart, and the last one for ten minutes more, and expects these alerts with
/// these labels five minutes after the first, and no others by those names.
pub(super) fn fire_on(pages: &[Scrape], alerts: &[(&str, &str)]) {
    let last = pages.last().unwrap();
    let shown = last.samples().filter(|(series, _)| !series.contains("_bucket"));
    let series: String = shown
        .map(|(series, _)| {
            let values =
                pages.iter().map(|page| page.value(series).unwrap_or_else(|| "_".to_owned()));
            let values = values.collect::<Vec<_>>().join(" ");
            format!("      - series: '{series}'\n        values: '{values}x10'\n")
        })
        .collect();
    let expected: String = alerts
        .iter()
        .map(|(alert, labels)| {
            let firing = format!("alertname=\"{alert}\",alertstate=\"firing\"");
            format!(
                "      - expr: ALERTS{{{firing}}}\n        eval_time: 5m\n        exp_samples:\n          \
                 - labels: 'ALERTS{{{firing},{labels}}}'\n            value: 1\n"
            )
        })
        .collect();
    let test = format!(
        "rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    \
         input_series:\n{series}    promql_expr_test:\n{expected}"
    );
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("alerts.yml"), read("alerts.yml")).unwrap();
    let file = directory.path().join("scraped_test.yml");
    fs::write(&file, &test).unwrap();
    let judged = judge(&["test", "rules", file.to_str().unwrap()]);
    assert_eq!(judged, Ok(()), "on what was scraped:\n{test}");
}
