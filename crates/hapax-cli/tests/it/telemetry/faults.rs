//! What somebody is told who configured telemetry so that it cannot be meant.

use std::{fs, process::Command};

use crate::text;

const UPSTREAM: &str = "[upstream]\nurl = \"http://127.0.0.1:3000\"\n";

/// Whether a file with these tables is good in this environment, and what is said about it.
fn checked(tables: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("gateway.toml"), format!("{UPSTREAM}{tables}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.args(["check-config", "gateway.toml"]).current_dir(directory.path());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_write_instead() {
    for (tables, told) in [
        ("[telemetry]\nsample = 2", "4:10: `sample` is out of range; write a number from 0 to 1"),
        (
            "[telemetry]\nsample = \"all\"",
            "4:10: `sample` cannot be text; write a number from 0 to 1",
        ),
        ("[telemetry]\nprotocol = \"udp\"", "write \"grpc\" or \"http\" instead"),
        (
            "[telemetry]\nendpoint = \"collector\"",
            "write \"http://127.0.0.1:3000\" or \"https://…\"",
        ),
        ("[telemetry]\nheaders = [\"a\"]", "`headers` is no header; write \"name=value\" instead"),
        ("[telemetry]\nheaders_file = \"missing\"", "which cannot be read"),
        ("[telemetry]\ninterval = \"1s\"", "there is no setting \"interval\" here"),
        ("[access_log]", "write `to = \"access.log\"`, or `to = \"stderr\"`, too"),
        ("[access_log]\nto = \"\"", "`to` names no file"),
        ("[[telemetry]]", "`telemetry` cannot be a list; write a table, `[telemetry]`, instead"),
    ] {
        let (is_good, said) = checked(tables, &[]);
        assert!(!is_good && said.contains(told), "{tables}\nsays {said}");
    }
}

#[test]
fn a_variable_that_cannot_be_meant_is_refused_by_its_name() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (name, value, told) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector", "write \"http://127.0.0.1:3000\""),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "write \"grpc\" or \"http/protobuf\""),
        ("OTEL_EXPORTER_OTLP_HEADERS", "token", "write \"name=value\""),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "write milliseconds"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "write \"always_on\""),
        ("OTEL_RESOURCE_ATTRIBUTES", "shop", "write \"name=value,name=value\""),
    ] {
        let (is_good, said) = checked("", &[endpoint, (name, value)]);
        assert!(!is_good && said.contains(&format!("{name}: it ")), "{name} says {said}");
        assert!(said.contains(told), "{name} says {said}");
    }
    let sampler = ("OTEL_TRACES_SAMPLER", "traceidratio");
    let (is_good, said) = checked("", &[endpoint, sampler, ("OTEL_TRACES_SAMPLER_ARG", "1.5")]);
    assert!(!is_good && said.contains("OTEL_TRACES_SAMPLER_ARG: it cannot be"), "{said}");
}

#[test]
fn what_is_in_force_is_said_without_what_is_secret_and_the_environment_counts_for_more() {
    let tables = "[telemetry]\nendpoint = \"https://one.example:4318\"\nsample = 0.01\n\
                  headers = [\"x-api-key=hush\"]\n[access_log]\nto = \"access.log\"\n";
    let (is_good, said) = checked(tables, &[]);
    assert!(is_good, "{said}");
    assert!(
        said.contains(
            "tells https://one.example:4318/ by OTLP over HTTP: 1 % of traces, and what callers record, \
             metrics every 60s"
        ),
        "{said}"
    );
    assert!(said.contains("access log in access.log") && !said.contains("hush"), "{said}");
    let (is_good, said) = checked(
        tables,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://two.example:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ],
    );
    assert!(
        is_good
            && said.contains("tells http://two.example:4317/ by OTLP over gRPC: 0 % of traces,")
    );
    let (is_good, said) = checked(tables, &[("OTEL_SDK_DISABLED", "true")]);
    assert!(is_good && !said.contains("OTLP"), "{said}");
    let (is_good, said) = checked("", &[("OTEL_SERVICE_NAME", "shop")]);
    assert!(is_good && !said.contains("OTLP"), "a name alone asks for nothing: {said}");
}

#[test]
fn every_setting_of_telemetry_is_explained_and_in_the_example() {
    let repository = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(repository.clone() + "/docs/gateway-config.md").unwrap();
    let shown = fs::read_to_string(repository + "/examples/gateway.toml").unwrap();
    let (_, said) = checked("[telemetry]\nnonsense_that_is_like_nothing = 1", &[]);
    let (_, known) = said.split_once("write `").unwrap();
    let known = known.split(" instead").next().unwrap();
    let names: Vec<_> = known.split('`').filter(|name| !name.contains([' ', ','])).collect();
    assert!(names.len() > 5, "{said}");
    for name in names.iter().filter(|name| !name.is_empty()).chain([&"to"]) {
        let row = format!("| `{name}` |");
        assert!(page.lines().any(|line| line.starts_with(&row)), "`{name}` has no row");
        assert!(shown.contains(&format!("{name} = ")), "`{name}` is not shown");
    }
}
