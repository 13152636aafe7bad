//! What every SDK does alike, as files for their tests: `sdk/vectors/*.json`, written from what this code does.
//!
//! `HAPAX_VECTORS=write cargo test -p hapax --all-features vectors` writes them anew.

use std::{env, fs, path::Path};

use serde_json::Value;

mod answers;
mod comparison;
mod keys;
mod operations;
mod refusals;
mod webhooks;

/// Holds a file against what the code does now.
fn check(name: &str, about: &str, cases: &[Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors");
    let path = folder.join(name);
    let document = serde_json::json!({ "about": about, "cases": cases });
    let expected = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if env::var("HAPAX_VECTORS").is_ok_and(|how| how == "write") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, &expected).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == expected, "{name} is behind: write the vectors anew");
}
