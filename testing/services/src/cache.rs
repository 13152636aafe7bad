//! What was fetched once and is found again: programs that no package manager keeps for us.

use std::{
    env,
    fs::{self, File, TryLockError},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{error::ServiceError, process::WaitDeadline};

const LOCK_LIMIT: Duration = Duration::from_secs(600);

/// The directory `name` of the cache; `fill` fills it if it is not there yet.
///
/// Programs that start side by side may all find it missing: one fills, the others wait. What was
/// filled halfway is never found.
pub(crate) fn filled(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), ServiceError>,
) -> Result<PathBuf, ServiceError> {
    filled_in(&root(), name, fill)
}

/// The same in another place than the usual cache; everybody may look into it.
pub(crate) fn filled_in(
    root: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), ServiceError>,
) -> Result<PathBuf, ServiceError> {
    let dir = root.join(name);
    if dir.is_dir() {
        return Ok(dir);
    }
    fs::create_dir_all(root).map_err(ServiceError::io(format!("make {}", root.display())))?;
    let _lock = lock(&root.join("lock"))?;
    if dir.is_dir() {
        return Ok(dir);
    }
    let partial = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(root);
    let mut partial = partial.map_err(ServiceError::io("make a temporary directory"))?;
    fill(partial.path())?;
    let open = fs::set_permissions(partial.path(), fs::Permissions::from_mode(0o755));
    open.map_err(ServiceError::io(format!("open {}", partial.path().display())))?;
    fs::rename(partial.path(), &dir)
        .map_err(ServiceError::io(format!("rename {}", partial.path().display())))?;
    partial.disable_cleanup(true);
    Ok(dir)
}

/// `.services/cache` of the workspace we are called in, where there is one.
fn root() -> PathBuf {
    // Cargo says where the package is whose tests it runs; they may change their directory.
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let place = package.or_else(|| env::current_dir().ok()).unwrap_or_default();
    let workspace = place.ancestors().find(|dir| dir.join("Cargo.lock").is_file());
    match workspace {
        Some(workspace) => workspace.join(".services/cache"),
        None => env::temp_dir().join("hapax-services-cache"),
    }
}

/// The lock of this file, once whoever holds it lets go.
pub(crate) fn lock(path: &Path) -> Result<File, ServiceError> {
    let file = File::create(path).map_err(ServiceError::io(format!("open {}", path.display())))?;
    let deadline = WaitDeadline::after(LOCK_LIMIT);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if deadline.pause() => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("waiting for {}", path.display());
                let log = String::new();
                return Err(ServiceError::TooSlow { what, limit: LOCK_LIMIT, log });
            }
            Err(TryLockError::Error(error)) => {
                return Err(ServiceError::io(format!("lock {}", path.display()))(error));
            }
        }
    }
}
