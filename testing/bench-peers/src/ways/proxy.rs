//! The program `idempotent-proxy-server`, which is installed where this program was built.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use hapax_services::process;

use crate::{args::Serve, effect, error::BenchError};

const VERSION: &str = "1.2.2";
/// It is built from source, with the versions it was published with.
const INSTALL_LIMIT: Duration = Duration::from_secs(30 * 60);
/// It takes requests only for addresses its operator has named; this is ours.
pub(crate) const PATH: &str = "/URL_PAY";
/// How long it keeps answers, which is also how long it waits for them and how long a key stays
/// locked. Its own default of ten seconds would forget keys while they are replayed.
const KEPT: Duration = Duration::from_secs(60);

/// The installed program.
#[derive(Debug)]
pub(crate) struct Proxy(PathBuf);

impl Proxy {
    /// The program, installed if it is not there yet.
    pub(crate) fn find_or_install() -> Result<Self, BenchError> {
        let root = beside_this_program().map_err(BenchError::system("finding this program"))?;
        let program = root.join("bin/idempotent-proxy-server");
        if !program.is_file() {
            let mut install = Command::new("cargo");
            install.args(["install", "idempotent-proxy-server", "--locked", "--version", VERSION]);
            process::run(install.arg("--root").arg(&root), INSTALL_LIMIT)?;
        }
        Ok(Self(program))
    }

    /// How it is started as this server, in this directory.
    pub(crate) fn command(&self, serve: &Serve, directory: &Path) -> Result<Command, BenchError> {
        // It refuses to start without this file.
        fs::write(directory.join(".env"), "").map_err(BenchError::system("writing a setting"))?;
        let kept = serve.lease.unwrap_or(KEPT).as_millis();
        let mut command = Command::new(&self.0);
        command.current_dir(directory).env("LOG_LEVEL", "error");
        command.env("SERVER_ADDR", format!("127.0.0.1:{}", serve.port));
        command.env("REQUEST_TIMEOUT", kept.to_string());
        command.env("URL_PAY", format!("http://127.0.0.1:{}{}", serve.upstream, effect::PATH));
        if !serve.store.is_empty() {
            command.env("REDIS_URL", &serve.store);
        }
        Ok(command)
    }
}

fn beside_this_program() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let built = program.parent().and_then(Path::parent);
    Ok(built.unwrap_or_else(|| Path::new(".")).join("proxy"))
}
