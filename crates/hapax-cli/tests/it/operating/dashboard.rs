//! The dashboard people load into Grafana: every expression parses, and a real Prometheus that scraped a running gateway
//! has a value for it.

use std::{fs, path::PathBuf, process::Command};

use hapax_services::prometheus::{PrometheusServer, promtool};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{
    text,
    world::{Behaviour, Setup, Upstream, ask, post, until},
};

fn dashboard() -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana/hapax.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Every expression, with what Grafana would put in place of its variables.
fn expressions() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let written = targets.map(|target| target["expr"].as_str().unwrap());
    let filled = written.map(|expression| {
        let expression = expression.replace("$__rate_interval", "30s").replace("$__range", "1m");
        expression.replace("$job", ".+").replace("$instance", ".+")
    });
    let filled: Vec<_> = filled.collect();
    assert!(filled.len() > 20 && filled.iter().all(|expression| !expression.contains('$')));
    filled
}

#[test]
fn every_expression_of_the_dashboard_is_good_in_the_eyes_of_promtool() {
    let rules = expressions().into_iter().enumerate().map(|(number, expression)| {
        let expression = serde_json::to_string(&expression).unwrap();
        format!("      - {{ record: \"panel:{number}\", expr: {expression} }}\n")
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    let groups = format!("groups:\n  - name: dashboard\n    rules:\n{}", rules.collect::<String>());
    fs::write(file.path(), groups).unwrap();
    let mut command = Command::new(promtool().unwrap());
    let output = command.args(["check", "rules"]).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// What this Prometheus has for an expression now.
pub(super) async fn values(prometheus: &PrometheusServer, expression: &str) -> Vec<String> {
    let query = utf8_percent_encode(expression, NON_ALPHANUMERIC);
    let request = format!("GET /api/v1/query?query={query} HTTP/1.1\r\nhost: a\r\n\r\n");
    // Until it has begun it answers, and knows nothing.
    let answer = ask(prometheus.address(), request).await.filter(|answer| answer.status != 503);
    let Some(answer) = answer else { return Vec::new() };
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    let result = answer["data"]["result"].as_array().unwrap();
    result.iter().map(|sample| sample["value"][1].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_expression_of_the_dashboard_has_a_value_over_what_a_running_gateway_shows() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[[route]]\nmatch = \"POST /pay\"\n[[relay]]\nname = \"tape\"\nto = \"stdout:\"\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    let admin = gateway.admin;
    let prometheus = spawn_blocking(move || PrometheusServer::start(&[admin]).unwrap());
    let prometheus = prometheus.await.unwrap();
    let mut number = 0;
    for expression in expressions() {
        let mut seen = Vec::new();
        until(&expression, async || {
            // Rates need something that happens while it is scraped.
            number += 1;
            for _ in 0..2 {
                let paid = ask(gateway.address, post("/pay", &format!("k-{number}"), "ten")).await;
                assert_eq!(paid.unwrap().status, 201);
            }
            seen = values(&prometheus, &expression).await;
            seen.iter().any(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
        })
        .await;
    }
    let unknown = values(&prometheus, "sum(hapax_no_such_metric)").await;
    assert!(unknown.is_empty(), "what is not shown has no value");
}
