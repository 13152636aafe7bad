//! Every feature alone, and none: what users combine must not depend on what others happen to enable.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use super::{cargo, command, not_run};
use crate::TaskFailure;

/// SQLite is compiled anew for each set of its features. Nothing of it is run here, and without optimisation
/// that takes a few seconds.
const PLAIN_SQLITE: &str = "profile.dev.package.libsqlite3-sys.opt-level=0";

/// Checks each crate that has features without any, and with each of them alone.
pub(super) fn check(root: &Path) -> Result<(), TaskFailure> {
    let asked = command(root).args(["metadata", "--locked", "--no-deps"]).output();
    let text = asked.map_err(not_run)?.stdout;
    let metadata: Metadata = serde_json::from_slice(&text)
        .map_err(|error| TaskFailure::new(format!("`cargo metadata` cannot be read: {error}")))?;
    for package in metadata.packages {
        for feature in package.choices() {
            println!("-- {} {feature:?}", package.name);
            // Lints, so that nothing is left over where a feature is missing; of this crate alone, because the
            // others have their turn.
            let what = ["clippy", "--quiet", "--locked", "--no-deps", "--config", PLAIN_SQLITE];
            let with = ["--package", &package.name, "--no-default-features", "--features", feature];
            cargo(root, &[&what[..], &with, &["--", "-D", "warnings"]].concat())?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<PackageFeatures>,
}

/// A crate and its features.
#[derive(Deserialize)]
struct PackageFeatures {
    name: String,
    features: BTreeMap<String, Vec<String>>,
}

impl PackageFeatures {
    /// No feature, then each; nothing for a crate that has none.
    ///
    /// A feature that only switches on one of another crate is checked there.
    fn choices(&self) -> impl Iterator<Item = &str> {
        let none = (!self.features.is_empty()).then_some("");
        let each = self.features.iter().filter(|(name, needs)| {
            let is_passed_on = needs.iter().any(|need| need.contains('/'))
                && !needs.iter().any(|need| need.starts_with("dep:"));
            *name != "default" && !is_passed_on
        });
        none.into_iter().chain(each.map(|(name, _)| name.as_str()))
    }
}
