//! Programs that are built from modules of Go, pinned by version and hash.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{cache, debian, error::ServiceError, process, programs};

const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// A program to be built.
pub(crate) struct GoProgram {
    /// What it is called.
    pub(crate) name: &'static str,
    /// The directory of the cache it is in, which names its version.
    pub(crate) cached: &'static str,
    /// The files of the module it is built in.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// What is built there.
    pub(crate) package: &'static str,
    /// What somebody is told for whom it cannot be built.
    pub(crate) remedy: &'static str,
}

impl GoProgram {
    /// Where it is, after building it if need be.
    pub(crate) fn find_or_build(&self) -> Result<PathBuf, ServiceError> {
        Ok(cache::filled(self.cached, |dir| self.build(dir))?.join(self.name))
    }

    fn build(&self, dir: &Path) -> Result<(), ServiceError> {
        let go = self.go()?;
        let module = tempfile::tempdir().map_err(ServiceError::io("make a temporary directory"))?;
        for (name, content) in self.files {
            let file = module.path().join(name);
            fs::write(&file, content)
                .map_err(ServiceError::io(format!("write {}", file.display())))?;
        }
        let mut command = Command::new(go);
        command.args(["build", "-mod=readonly", "-o"]).arg(dir.join(self.name)).arg(self.package);
        // Whatever workspace or flags its user has, this module is built alone.
        command.current_dir(module.path()).env("GOWORK", "off").env("GOFLAGS", "");
        let built = process::run(&mut command, BUILD_LIMIT);
        built.map(drop).map_err(ServiceError::not_fetched(self.name, self.remedy))
    }

    fn go(&self) -> Result<PathBuf, ServiceError> {
        let find = || programs::find("go", &["/usr/local/go/bin"]);
        if let Some(go) = find() {
            return Ok(go);
        }
        debian::install(self.name, "golang-go", self.remedy)?;
        find().ok_or(ServiceError::Missing { server: self.name, remedy: self.remedy })
    }
}
