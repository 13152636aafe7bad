//! An OpenID provider: the certified implementation for Node, on a free loopback port, with people in groups.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, time::Duration};

use tempfile::TempDir;

use crate::{
    cache,
    error::ServiceError,
    ports,
    process::{self, Process, StopStep},
    programs,
};

const SERVER: &str = "OpenID provider";
const REMEDY: &str = "it needs Node 20 with npm that reaches its registry";
const CACHED: &str = "oidc-provider-9.13.3";
const FILES: [(&str, &str); 2] = [
    ("package.json", include_str!("openid/package.json")),
    ("package-lock.json", include_str!("openid/package-lock.json")),
];
const PROGRAM: &str = include_str!("openid/server.mjs");
const FETCH_LIMIT: Duration = Duration::from_secs(300);
const READY_LIMIT: Duration = Duration::from_secs(30);

/// What the provider calls its one client.
pub const CLIENT_ID: &str = "hapax";
/// What it knows it by.
pub const CLIENT_SECRET: &str = "secret of hapax";

/// A running provider. Dropping it stops it.
///
/// `ada` is in the group `payments-oncall`, `bo` in `payments`, `cy` in neither; they need no password.
#[derive(Debug)]
pub struct OidcServer {
    process: Option<Process>,
    dir: TempDir,
    port: u16,
}

impl OidcServer {
    /// Starts one, fetching it first if need be.
    pub fn start() -> Result<Self, ServiceError> {
        let packages = cache::filled(CACHED, fetch)?;
        ports::until_free(|| {
            let dir = tempfile::Builder::new().prefix("hapax-openid-").tempdir();
            let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
            lay_out(dir.path(), &packages)?;
            let [port] = ports::free()?;
            let mut server = Self { process: None, dir, port };
            server.resume().map(|()| server)
        })
    }

    /// What it calls itself, which is where it is: another site than `127.0.0.1` to a browser.
    pub fn issuer(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Stops it at once; does nothing if it is stopped.
    pub fn stop(&mut self) -> Result<(), ServiceError> {
        if let Some(mut process) = self.process.take() {
            process.stop(&[StopStep::KILL])?;
        }
        Ok(())
    }

    /// Starts it again at the same address, with other keys; does nothing if it is running.
    pub fn resume(&mut self) -> Result<(), ServiceError> {
        if self.process.is_some() {
            return Ok(());
        }
        let log = self.dir.path().join("server.log");
        let missing = || ServiceError::Missing { server: SERVER, remedy: REMEDY };
        let mut command = Command::new(programs::find("node", &[]).ok_or_else(missing)?);
        command.current_dir(self.dir.path()).arg("server.mjs").arg(self.port.to_string());
        let process = self.process.insert(Process::spawn(SERVER, &mut command, &log)?);
        process.wait_until_logged(READY_LIMIT, |log| log.contains("ready")).map(drop)
    }
}

impl Drop for OidcServer {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.stop();
    }
}

/// Its program, beside the packages it is made of.
fn lay_out(dir: &Path, packages: &Path) -> Result<(), ServiceError> {
    fs::write(dir.join("server.mjs"), PROGRAM)
        .map_err(ServiceError::io(format!("write the program of the {SERVER}")))?;
    symlink(packages.join("node_modules"), dir.join("node_modules"))
        .map_err(ServiceError::io(format!("link the packages of the {SERVER}")))
}

fn fetch(dir: &Path) -> Result<(), ServiceError> {
    for (name, content) in FILES {
        fs::write(dir.join(name), content)
            .map_err(ServiceError::io(format!("write {name} of the {SERVER}")))?;
    }
    let missing = || ServiceError::Missing { server: SERVER, remedy: REMEDY };
    let mut npm = Command::new(programs::find("npm", &[]).ok_or_else(missing)?);
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(dir);
    let fetched = process::run(&mut npm, FETCH_LIMIT);
    fetched.map(drop).map_err(ServiceError::not_fetched(SERVER, REMEDY))
}
