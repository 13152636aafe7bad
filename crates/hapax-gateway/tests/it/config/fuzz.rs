//! Whatever is written, it is read or refused.

use hapax_gateway::config::SETTINGS;
use proptest::{prelude::*, sample::select};

use super::read;

/// Lines that look like a configuration.
fn line() -> impl Strategy<Value = String> {
    let names: Vec<_> = SETTINGS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let tables: Vec<_> = SETTINGS.iter().map(|(table, _)| *table).collect();
    let value = prop_oneof![
        select(vec![
            "true",
            "-1",
            "0x10",
            "1e999",
            "[]",
            "{}",
            "[[1]]",
            "\"\"",
            "\"10s\"",
            "\"64KiB\"",
            "'/a'",
            "\"POST /a\"",
            "\"* /*\"",
            "\"json\"",
            "\"probe\"",
            "\"/{key}\"",
            "\"jwt\"",
            "\"header\"",
            "\"single\"",
            "\"99999999999999999999d\"",
            "\"http://a\"",
            "\"ü\"",
            "2020-01-01",
        ])
        .prop_map(str::to_owned),
        "\"[ -~]{0,12}\"",
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    prop_oneof![
        4 => (select(names), value).prop_map(|(name, value)| format!("{name} = {value}")),
        1 => select(tables.clone()).prop_map(|table| format!("[{table}]")),
        1 => select(tables).prop_map(|table| format!("[[{table}]]")),
    ]
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = read(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn what_looks_like_a_configuration_never_panics(lines in prop::collection::vec(line(), 0..12)) {
        let text = lines.join("\n");
        if let Err(error) = read(&text) {
            prop_assert!(error.to_string().contains("gateway.toml:"), "{error}");
        }
    }
}
