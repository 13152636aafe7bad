//! Programs that cargo does not bring: those of the machine, else of our own folder, filled when needed.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{absent, command, succeed, target_dir};
use crate::TaskFailure;

/// Licences, bans and sources of dependencies.
pub(super) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", origin: Origin::Crates };
/// Spelling.
pub(super) const TYPOS: Tool = Tool::python("typos", "1.51.1");

/// Where tools are put that the machine does not have, in the target directory.
const FOLDER: &str = "tools";

/// A program and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    origin: Origin,
}

#[derive(Debug, Clone, Copy)]
enum Origin {
    /// Compiled here, because nobody we use distributes it as a program.
    Crates,
    /// As a program.
    PyPi,
}

impl Tool {
    /// A package for Python.
    pub(crate) const fn python(name: &'static str, version: &'static str) -> Self {
        Self { name, version, origin: Origin::PyPi }
    }

    /// Where it is, installed if need be; `None` if it cannot be had, which has been told.
    pub(crate) fn folder(self, root: &Path) -> Result<Option<PathBuf>, TaskFailure> {
        let folder = target_dir()?.join(FOLDER).join(format!("{}-{}", self.name, self.version));
        if folder.join("bin").is_dir() {
            return Ok(Some(folder));
        }
        match self.install(root, &folder) {
            Ok(()) => Ok(Some(folder)),
            Err(failure) => {
                absent(&format!("{} cannot be installed: {failure}", self.name)).map(|()| None)
            }
        }
    }

    /// Runs it in the workspace at `root`, installing it first if need be.
    pub(super) fn run(self, root: &Path, args: &[&str]) -> Result<(), TaskFailure> {
        match self.find_or_install(root) {
            Ok(program) => succeed(Command::new(program).current_dir(root).args(args)),
            Err(failure) => absent(&format!("{} cannot be installed: {failure}", self.name)),
        }
    }

    fn find_or_install(self, root: &Path) -> Result<PathBuf, TaskFailure> {
        let folder = target_dir()?.join(FOLDER).join(self.name);
        let own = folder.join("bin").join(self.name);
        if let Some(found) = [PathBuf::from(self.name), own.clone()].into_iter().find(can_run) {
            return Ok(found);
        }
        self.install(root, &folder)?;
        Ok(own)
    }

    fn install(self, root: &Path, folder: &Path) -> Result<(), TaskFailure> {
        let Self { name, version, origin } = self;
        println!("installing {name} {version}");
        match origin {
            Origin::Crates => {
                let mut cargo = command(root);
                cargo.args(["install", "--quiet", "--locked", name, "--version", version]);
                // It runs for seconds: what matters is how long it compiles.
                cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
                cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
                cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
                succeed(cargo.arg("--root").arg(folder))
            }
            Origin::PyPi => {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]).arg(folder);
                succeed(pip.arg(format!("{name}=={version}")))
            }
        }
    }
}

fn can_run(program: &PathBuf) -> bool {
    let mut command = Command::new(program);
    let asked = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
