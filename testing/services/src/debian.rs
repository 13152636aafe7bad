//! Installs a Debian package, where that is possible.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{cache, error::ServiceError, process};

const UPDATE_LIMIT: Duration = Duration::from_secs(120);
const INSTALL_LIMIT: Duration = Duration::from_secs(300);
const UNPACK_LIMIT: Duration = Duration::from_secs(60);

/// Where Debian says which archive its packages come from.
const SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";

/// Installs the Debian `package` that has this server or tool; `remedy` is what a user who may not
/// is told.
pub fn install(
    server: &'static str,
    package: &str,
    remedy: &'static str,
) -> Result<(), ServiceError> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        return Err(ServiceError::Missing { server, remedy });
    }
    // Test programs that start side by side may find several things missing at once, and only one may
    // update the lists. Others' packages are waited for by apt-get itself.
    let _alone = cache::lock(&env::temp_dir().join("hapax-debian.lock"))?;
    process::run(apt_get().arg("update"), UPDATE_LIMIT)?;
    process::run(apt_get().args(["install", "-y", package]), INSTALL_LIMIT)?;
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["-q", "-o", "DPkg::Lock::Timeout=240"]);
    command
}

/// A program of another release than this machine's, with all that it needs beside it.
pub(crate) struct ForeignProgram {
    dir: PathBuf,
    program: &'static str,
}

impl ForeignProgram {
    /// The program at this place of a package of the release `suite`, unpacked into the cache and not installed.
    pub(crate) fn unpacked(
        (suite, package): (&'static str, &'static str),
        program: &'static str,
        remedy: &'static str,
    ) -> Result<Self, ServiceError> {
        let dir = cache::filled(&format!("{package}-{suite}"), |dir| unpack(dir, suite, package));
        let dir = dir.map_err(ServiceError::not_fetched(package, remedy))?;
        Ok(Self { dir, program })
    }

    /// Runs it with the libraries of its own release.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.dir.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(self.dir.join("usr/lib/x86_64-linux-gnu"));
        command.arg(self.dir.join(self.program));
        command
    }
}

/// Unpacks a package of another release, and whatever it depends on, from the archive that this machine uses.
fn unpack(dir: &Path, suite: &str, package: &str) -> Result<(), ServiceError> {
    let work = tempfile::tempdir().map_err(ServiceError::io("make a temporary directory"))?;
    let at = |name: &str| work.path().join(name);
    let write = |file: PathBuf, content: &str| {
        fs::write(&file, content).map_err(ServiceError::io(format!("write {}", file.display())))
    };
    for name in ["sources", "state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(at(name)).map_err(ServiceError::io(format!("make {name}")))?;
    }
    let sources =
        fs::read_to_string(SOURCES).map_err(ServiceError::io(format!("read {SOURCES}")))?;
    write(at("sources/other.sources"), &of_suite(&sources, suite))?;
    write(at("status"), "")?;
    let apt_get = || {
        let mut command = apt_get();
        let option = |name: &str, value: &Path| format!("{name}={}", value.display());
        command.args(["-o", &option("Dir::Etc::SourceList", Path::new("/dev/null"))]);
        command.args(["-o", &option("Dir::Etc::SourceParts", &at("sources"))]);
        command.args(["-o", &option("Dir::State", &at("state"))]);
        command.args(["-o", &option("Dir::State::status", &at("status"))]);
        command.args(["-o", &option("Dir::Cache", &at("cache"))]);
        command.args(["-o", "APT::Sandbox::User=root"]);
        command
    };
    process::run(apt_get().arg("update"), UPDATE_LIMIT)?;
    let download = ["install", "-y", "--download-only", "--no-install-recommends", package];
    process::run(apt_get().args(download), INSTALL_LIMIT)?;
    let archives = fs::read_dir(at("cache/archives")).map_err(ServiceError::io("list archives"))?;
    for archive in archives.flatten().map(|entry| entry.path()) {
        if archive.extension().is_some_and(|extension| extension == "deb") {
            let mut command = Command::new("dpkg-deb");
            process::run(command.arg("-x").arg(archive).arg(dir), UNPACK_LIMIT)?;
        }
    }
    Ok(())
}

/// The first archive of these sources, in another release.
fn of_suite(sources: &str, suite: &str) -> String {
    let said = sources.lines().filter(|line| !line.starts_with('#'));
    let first = said.skip_while(|line| line.trim().is_empty());
    let first = first.take_while(|line| !line.trim().is_empty());
    let lines = first.map(|line| match line.split_once(':') {
        Some(("Suites", _)) => format!("Suites: {suite}\n"),
        Some(_) | None => format!("{line}\n"),
    });
    lines.collect()
}
