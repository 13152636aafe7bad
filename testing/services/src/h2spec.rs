//! h2spec: cases that others wrote, for whether a server speaks HTTP/2 as its RFCs say.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{cache, debian, error::ServiceError, process, programs};

const TOOL: &str = "h2spec";
const REMEDY: &str = "it needs Go 1.19 or newer that reaches its module proxy; on Debian that is \
                      the package golang-go";

const CACHED: &str = "h2spec-2.2.1";
const PACKAGE: &str = "github.com/summerwind/h2spec/cmd/h2spec";
/// The release is older than modules: what it is built with is pinned here, by version and hash.
const FILES: [(&str, &str); 2] =
    [("go.mod", include_str!("h2spec/go.mod")), ("go.sum", include_str!("h2spec/go.sum"))];

const BUILD_LIMIT: Duration = Duration::from_secs(300);

/// The program, built first if need be.
pub fn program() -> Result<PathBuf, ServiceError> {
    Ok(cache::filled(CACHED, build)?.join(TOOL))
}

fn build(dir: &Path) -> Result<(), ServiceError> {
    let go = go()?;
    let module = tempfile::tempdir().map_err(ServiceError::io("make a temporary directory"))?;
    for (name, content) in FILES {
        let file = module.path().join(name);
        fs::write(&file, content).map_err(ServiceError::io(format!("write {}", file.display())))?;
    }
    let mut command = Command::new(go);
    command.args(["build", "-mod=readonly", "-o"]).arg(dir.join(TOOL)).arg(PACKAGE);
    // Whatever workspace or flags its user has, this module is built alone.
    command.current_dir(module.path()).env("GOWORK", "off").env("GOFLAGS", "");
    let built = process::run(&mut command, BUILD_LIMIT);
    built.map(drop).map_err(ServiceError::not_fetched(TOOL, REMEDY))
}

fn go() -> Result<PathBuf, ServiceError> {
    let find = || programs::find("go", &["/usr/local/go/bin"]);
    if let Some(go) = find() {
        return Ok(go);
    }
    debian::install(TOOL, "golang-go", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: TOOL, remedy: REMEDY })
}
