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
    let text = serde_json::to_vec_pretty(&bill);
    text.map_err(|error| TaskFailure::new(format!("no bill of materials: {error}")))
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
