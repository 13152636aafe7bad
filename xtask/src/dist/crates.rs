//! The crates as they would be published: complete, and fitting each other.

use std::{fs, path::Path};

use super::{
    Package,
    dependencies::{Metadata, metadata},
    unusable,
};
use crate::{
    TaskFailure,
    ci::{command, succeed},
};

/// `NAME-VERSION.crate` of everything that may be published.
///
/// They are packed together, because each needs others that no registry has yet. Nothing is compiled
/// again: every stage of `cargo xtask ci` has done that.
pub(super) fn pack(root: &Path) -> Result<Vec<Package>, TaskFailure> {
    let Metadata { packages, target_directory, .. } = metadata(root, &["--no-deps"])?;
    let published: Vec<_> = packages.iter().filter(|one| one.publish.is_none()).collect();
    for package in &published {
        let is_told = package.description.is_some() && package.license.is_some();
        if !is_told || package.readme.is_none() {
            let what = "needs a description, a license and a readme in its manifest";
            return Err(TaskFailure::new(format!("{} {what}", package.name)));
        }
    }
    let names: Vec<_> = published.iter().flat_map(|one| ["--package", &one.name]).collect();
    let cargo = |more: &[&str]| {
        let mut cargo = command(root);
        cargo.args(["package", "--quiet", "--locked", "--no-verify", "--allow-dirty"]);
        succeed(cargo.args(more).args(&names))
    };
    // Whoever has built the program has all that it takes; a registry would be asked for each crate.
    cargo(&["--offline"]).or_else(|_| cargo(&[]))?;
    let folder = target_directory.join("package");
    let packed = published.iter().map(|one| {
        let name = format!("{}-{}.crate", one.name, one.version);
        let path = folder.join(&name);
        let content = fs::read(&path).map_err(|error| unusable(&path, &error))?;
        Ok(Package::new(name, content))
    });
    packed.collect()
}
