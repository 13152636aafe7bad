//! What the program is made of, as cargo says it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde::Deserialize;

use super::{program::Architecture, unusable};
use crate::{
    TaskFailure,
    ci::{command, not_run},
};

/// What the program is built with beside its usual features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Brokers {
    /// It is no part of a usual build, and nobody can add it later to what is installed.
    pub(super) kafka: bool,
}

impl Brokers {
    /// What cargo is told.
    pub(super) fn flags(self) -> &'static [&'static str] {
        if self.kafka { &["--features", "hapax-cli/kafka"] } else { &[] }
    }
}

/// The crates that are compiled into the program, in order of their names.
pub(super) struct Dependencies {
    pub(super) packages: Vec<DependedOn>,
}

/// One of them.
pub(super) struct DependedOn {
    pub(super) package: CargoPackage,
    /// Those of the list that it needs, by [`CargoPackage::id`].
    pub(super) needs: BTreeSet<String>,
    /// The sum of what was fetched; none for our own.
    pub(super) sha256: Option<String>,
}

impl Dependencies {
    /// Those of a static program: macros, build scripts and tests are no part of it.
    pub(super) fn of_program(
        root: &Path,
        architecture: Architecture,
        brokers: Brokers,
    ) -> Result<Self, TaskFailure> {
        let target = architecture.target();
        let linked = linked(root, &target, brokers)?;
        let Metadata { packages, resolve, .. } =
            metadata(root, &[&["--filter-platform", &target], brokers.flags()].concat())?;
        let sums = sums(root)?;
        let is_linked = |package: &CargoPackage| {
            linked.contains(&(package.name.clone(), package.version.clone()))
        };
        let ids: BTreeSet<_> =
            packages.iter().filter(|one| is_linked(one)).map(|one| one.id.clone()).collect();
        let mut needed: BTreeMap<_, _> = resolve
            .map(|resolve| resolve.nodes)
            .unwrap_or_default()
            .into_iter()
            .map(|node| (node.id, node.dependencies))
            .collect();
        let packages = packages.into_iter().filter(|one| ids.contains(&one.id)).map(|package| {
            let needs = needed.remove(&package.id).unwrap_or_default();
            let needs = needs.into_iter().filter(|id| ids.contains(id)).collect();
            let sha256 = sums.get(&(package.name.clone(), package.version.clone())).cloned();
            DependedOn { package, needs, sha256: sha256.flatten() }
        });
        let mut packages: Vec<_> = packages.collect();
        packages.sort_by(|one, other| {
            (&one.package.name, &one.package.version)
                .cmp(&(&other.package.name, &other.package.version))
        });
        Ok(Self { packages })
    }
}

/// Names and versions of what is linked: `cargo metadata` tells the features of the whole workspace,
/// and only `cargo tree` those of one program.
fn linked(
    root: &Path,
    target: &str,
    brokers: Brokers,
) -> Result<BTreeSet<(String, String)>, TaskFailure> {
    let mut tree = command(root);
    tree.args(["tree", "--locked", "--package", "hapax-cli"]).args(brokers.flags());
    tree.args(["--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    let text = text(&tree.output().map_err(not_run)?, "cargo tree")?;
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
    });
    Ok(lines.collect())
}

fn sums(root: &Path) -> Result<BTreeMap<(String, String), Option<String>>, TaskFailure> {
    let path = root.join("Cargo.lock");
    let text = fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
    let lock: Lock = toml::from_str(&text)
        .map_err(|error| TaskFailure::new(format!("{}: {error}", path.display())))?;
    let packages = lock.package.into_iter();
    Ok(packages.map(|one| ((one.name, one.version), one.checksum)).collect())
}

/// What `cargo metadata` says of the workspace.
pub(super) fn metadata(root: &Path, args: &[&str]) -> Result<Metadata, TaskFailure> {
    let mut cargo = command(root);
    cargo.args(["metadata", "--locked", "--format-version", "1"]).args(args);
    let text = text(&cargo.output().map_err(not_run)?, "cargo metadata")?;
    serde_json::from_str(&text)
        .map_err(|error| TaskFailure::new(format!("`cargo metadata` cannot be read: {error}")))
}

fn text(output: &Output, what: &str) -> Result<String, TaskFailure> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TaskFailure::new(format!("`{what}` failed: {said}")))
}

/// A workspace and what it depends on.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<CargoPackage>,
    /// Where cargo puts what it builds and packs.
    pub(super) target_directory: PathBuf,
    resolve: Option<Resolve>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

/// A crate.
#[derive(Deserialize)]
pub(super) struct CargoPackage {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    pub(super) manifest_path: PathBuf,
    /// Nothing where it may be published anywhere; a list of registries otherwise.
    pub(super) publish: Option<Vec<String>>,
    /// Nothing for our own.
    pub(super) source: Option<String>,
    pub(super) readme: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}
