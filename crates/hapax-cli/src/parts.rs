//! What this program was built with: stores, destinations of events, and who can be told of what it does.

use std::sync::LazyLock;

/// Each part and whether it is here. Those without a feature always are.
const PARTS: [(&str, bool); 8] = [
    ("sqlite", true),
    ("postgres", true),
    ("webhooks", true),
    ("nats", cfg!(feature = "nats")),
    ("rabbitmq", cfg!(feature = "rabbitmq")),
    ("sqs", cfg!(feature = "sqs")),
    ("kafka", cfg!(feature = "kafka")),
    ("otlp", cfg!(feature = "otlp")),
];

/// What `hapax --version` says: the version, then what is here and what is not.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{}\n{}", env!("CARGO_PKG_VERSION"), sentence()));
    &VERSION
}

/// `with: sqlite, postgres; without: kafka`.
pub(crate) fn sentence() -> String {
    let names = |here: bool| {
        let named = PARTS.iter().filter(|(_, is_here)| *is_here == here);
        named.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    match names(false).as_str() {
        "" => format!("with: {}", names(true)),
        missing => format!("with: {}; without: {missing}", names(true)),
    }
}
