//! Installs a Debian package, where that is possible.

use std::{env, path::Path, process::Command, time::Duration};

use crate::{cache, error::ServiceError, process};

const UPDATE_LIMIT: Duration = Duration::from_secs(120);
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

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
