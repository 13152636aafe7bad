//! Packages for npm: one for each platform that carries the program, and one that finds the right one.
//!
//! A platform's package is complete by itself, so that its file can be run where there is no
//! registry; the other is what people name. Neither runs anything when it is installed.

use serde_json::{Map, Value, json};

use super::{
    Package,
    archive::{Entry, tar_gz},
    payload::Payload,
    program::{Architecture, Program},
    release::{AUTHORS, LICENCE, Release},
};
use crate::TaskFailure;

const NAME: &str = "hapax-cli";

/// `hapax-cli-linux-x64-VERSION.tgz`: the program and nothing between it and who runs it.
pub(super) fn pack_platform(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let mut manifest = manifest(&platform(program.architecture), release);
    manifest.insert("os".to_owned(), json!(["linux"]));
    manifest.insert("cpu".to_owned(), json!([program.architecture.node()]));
    manifest.insert("bin".to_owned(), json!({ "hapax": "bin/hapax" }));
    let entries = vec![Entry::program("bin/hapax", program.content.clone())];
    pack(manifest, entries, payload, release)
}

/// `hapax-cli-VERSION.tgz`: finds the program of the package for its platform. It names those that there are:
/// one that was not built would be looked for by every installation.
pub(super) fn pack_main(
    architectures: &[Architecture],
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let mut manifest = manifest(NAME, release);
    manifest.insert("bin".to_owned(), json!({ "hapax": "bin/hapax.js" }));
    manifest.insert("engines".to_owned(), json!({ "node": ">=18" }));
    let platforms = architectures.iter().map(|one| (platform(*one), json!(release.version)));
    let platforms: Map<String, Value> = platforms.collect();
    manifest.insert("optionalDependencies".to_owned(), Value::Object(platforms));
    let entries = vec![Entry::program("bin/hapax.js", payload.packaging("npm/hapax.js"))];
    pack(manifest, entries, payload, release)
}

fn platform(architecture: Architecture) -> String {
    format!("{NAME}-linux-{}", architecture.node())
}

fn manifest(name: &str, release: &Release) -> Map<String, Value> {
    let fields = [
        ("name", json!(name)),
        ("version", json!(release.version)),
        ("description", json!(release.description)),
        ("license", json!(LICENCE)),
        ("author", json!(AUTHORS)),
        ("keywords", json!(["idempotency", "retry", "outbox", "gateway"])),
    ];
    fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect()
}

fn pack(
    manifest: Map<String, Value>,
    mut entries: Vec<Entry>,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let name = manifest.get("name").and_then(Value::as_str).unwrap_or(NAME).to_owned();
    entries.push(Entry::file("package.json", format!("{:#}\n", Value::Object(manifest))));
    entries.push(Entry::file("README.md", payload.readme.clone()));
    entries.extend(payload.licences.iter().cloned());
    // Npm expects everything below a folder, whatever it is called.
    let entries: Vec<_> = entries.iter().map(|entry| entry.below("package")).collect();
    Ok(Package::new(format!("{name}-{}.tgz", release.version), tar_gz(&entries, release)?))
}
