//! The documents say what can be written.

use std::fs;

use hapax_gateway::{
    Config,
    config::{Beside, ConfigSource, ForeignTable, SETTINGS},
};

fn repository() -> String {
    format!("{}/../..", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_setting_is_explained() {
    let page = fs::read_to_string(repository() + "/docs/gateway-config.md").unwrap();
    for (table, names) in SETTINGS {
        for name in *names {
            let is_row = |line: &str| line.starts_with(&format!("| `{name}` |"));
            assert!(page.lines().any(is_row), "`{name}` of `{table}` has no row");
        }
    }
}

#[test]
fn the_example_is_good_and_shows_every_setting() {
    let path = repository() + "/examples/gateway.toml";
    let text = fs::read_to_string(&path).unwrap();
    for (table, names) in SETTINGS {
        for name in *names {
            let shown = [format!("{name} = "), format!("[{name}]"), format!("{name}.")];
            assert!(shown.iter().any(|shown| text.contains(shown)), "`{name}` of `{table}`");
        }
    }
    let source = ConfigSource { file: Some(path.into()), ..ConfigSource::default() };
    // Some tables in it are for whoever runs the gateway to read.
    let foreign = |name, is_repeated| ForeignTable { name, settings: &[], is_repeated };
    let tables =
        [foreign("relay", true), foreign("telemetry", false), foreign("access_log", false)];
    let beside = Beside { tables: &tables, read: &mut |_, _| Vec::new() };
    Config::load_beside(&source, beside).unwrap_or_else(|error| panic!("{error}"));
}
