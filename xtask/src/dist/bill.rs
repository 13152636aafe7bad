//! A bill of materials: what is compiled into the program, in the form of CycloneDX 1.5.

use serde_json::{Value, json};

use super::{
    dependencies::{DependedOn, Dependencies},
    release::{AUTHORS, LICENCE, Release},
};
use crate::TaskFailure;

const PROGRAM: &str = "hapax-cli";

/// The bill of this release. It has no number of its own, and no time but that of the release.
pub(super) fn cyclonedx(
    dependencies: &Dependencies,
    release: &Release,
) -> Result<Vec<u8>, TaskFailure> {
    let packages = &dependencies.packages;
    let reference = |id: &str| packages.iter().find(|one| one.package.id == id).map(purl);
    let components = packages.iter().filter(|one| one.package.name != PROGRAM).map(component);
    let graph = packages.iter().map(|one| {
        let needs: Vec<_> = one.needs.iter().filter_map(|id| reference(id)).collect();
        json!({ "ref": purl(one), "dependsOn": needs })
    });
    let program = format!("pkg:cargo/{PROGRAM}@{}", release.version);
    let bill = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist" }] },
            "authors": [{ "name": AUTHORS }],
            "component": {
                "type": "application", "bom-ref": program, "name": "hapax",
                "version": release.version, "description": release.description,
                "licenses": [{ "expression": LICENCE }], "purl": program,
            },
        },
        "components": components.collect::<Vec<_>>(),
        "dependencies": graph.collect::<Vec<_>>(),
    });
    text(&bill)
}

/// A package that is handed out beside the program.
pub(super) struct Handed {
    /// Its name that other tools know.
    pub(super) purl: String,
    pub(super) sha256: String,
}

/// The bill of the program and of these. They hold no code but their own: what they need is named in their
/// manifests, and comes from the registry of their language.
pub(super) fn with_packages(
    bill: &[u8],
    packages: &[Handed],
    release: &Release,
) -> Result<Vec<u8>, TaskFailure> {
    let mut bill: Value = serde_json::from_slice(bill).map_err(unwritten)?;
    let components = packages.iter().map(|one| {
        json!({
            "type": "library", "bom-ref": one.purl, "name": "hapax-once", "version": release.version,
            "scope": "excluded", "purl": one.purl, "licenses": [{ "expression": LICENCE }],
            "hashes": [{ "alg": "SHA-256", "content": one.sha256 }],
        })
    });
    let nodes = packages.iter().map(|one| json!({ "ref": one.purl, "dependsOn": [] }));
    for (list, more) in [
        ("components", components.collect::<Vec<_>>()),
        ("dependencies", nodes.collect::<Vec<_>>()),
    ] {
        bill[list].as_array_mut().into_iter().for_each(|list| list.extend(more.iter().cloned()));
    }
    text(&bill)
}

fn text(bill: &Value) -> Result<Vec<u8>, TaskFailure> {
    serde_json::to_vec_pretty(bill).map_err(unwritten)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` calls")]
fn unwritten(error: serde_json::Error) -> TaskFailure {
    TaskFailure::new(format!("no bill of materials: {error}"))
}

fn component(one: &DependedOn) -> Value {
    let package = &one.package;
    let mut component = json!({
        "type": "library", "bom-ref": purl(one), "name": package.name, "version": package.version,
        "scope": "required", "purl": purl(one),
    });
    if let Some(description) = &package.description {
        component["description"] = json!(description.trim());
    }
    if let Some(licence) = &package.license {
        // Older crates write a slash where the standard has a word.
        let expression = licence.replace('/', " OR ").replace("  ", " ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(sum) = &one.sha256 {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The name of a crate that other tools know. A version says which C library is inside after a plus.
fn purl(one: &DependedOn) -> String {
    let version = one.package.version.replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", one.package.name)
}
