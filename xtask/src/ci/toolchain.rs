//! The oldest compiler that is promised, `rust-version` in `Cargo.toml`.

use std::{fmt, fs, path::Path, process::Command};

use serde::Deserialize;

use super::{absent, succeed};
use crate::TaskFailure;

/// Shows that the workspace builds with the compiler that `rust-version` names.
///
/// Where that compiler is the running one, all other stages show it.
pub(super) fn check(root: &Path) -> Result<(), TaskFailure> {
    let (oldest, running) = (promised(root)?, running()?);
    if running < oldest {
        let said = format!("this compiler is {running}, and `rust-version` is {oldest}");
        return Err(TaskFailure::new(said));
    }
    if running == oldest {
        println!("{running} is `rust-version`: every stage is built with the oldest compiler");
        return Ok(());
    }
    // Rustup knows a compiler by the name it was installed by.
    let Some(name) =
        [format!("{oldest}"), format!("{oldest}.0")].into_iter().find(|name| is_installed(name))
    else {
        let install = format!("`rustup toolchain install {oldest}`");
        return absent(&format!("the compiler {oldest} is not installed ({install})"));
    };
    let mut check = Command::new("rustup");
    check.current_dir(root).args(["run", &name, "cargo", "check", "--locked", "--workspace"]);
    // Cargo tells its children which compiler it runs with.
    check.args(["--all-features"]).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    succeed(&mut check)
}

/// A version of the compiler, as far as `rust-version` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RustVersion {
    major: u32,
    minor: u32,
}

impl RustVersion {
    /// Reads `1.95` and `1.95.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(['.', '-']).map(|part| part.parse().ok());
        Some(Self { major: parts.next()??, minor: parts.next()?? })
    }
}

impl fmt::Display for RustVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    package: Package,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Package {
    rust_version: String,
}

fn promised(root: &Path) -> Result<RustVersion, TaskFailure> {
    let file = root.join("Cargo.toml");
    let unreadable = |error: &dyn fmt::Display| {
        TaskFailure::new(format!("`rust-version` cannot be read from {}: {error}", file.display()))
    };
    let text = fs::read_to_string(&file).map_err(|error| unreadable(&error))?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| unreadable(&error))?;
    let version = manifest.workspace.package.rust_version;
    RustVersion::parse(&version).ok_or_else(|| unreadable(&version))
}

fn running() -> Result<RustVersion, TaskFailure> {
    let output = Command::new("rustc").arg("--version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = said.as_deref().ok().and_then(|said| said.split(' ').nth(1));
    let release = version.and_then(RustVersion::parse);
    release.ok_or_else(|| TaskFailure::new(format!("`rustc --version` does not say it: {said:?}")))
}

fn is_installed(name: &str) -> bool {
    let asked = Command::new("rustup").args(["run", name, "rustc", "--version"]).output();
    asked.is_ok_and(|output| output.status.success())
}
