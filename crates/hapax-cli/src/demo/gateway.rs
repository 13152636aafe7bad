//! The gateway: this program, started again as `hapax serve`, to be killed and started again.

use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::json;

use super::{api::BY_REFERENCE, error::DemoError, process::GatewayProcess};

const READY_LIMIT: Duration = Duration::from_secs(20);
const TOKEN_FILE: &str = "admin-token";

/// A running gateway. Dropping it kills it.
#[derive(Debug)]
pub(super) struct DemoGateway {
    pub(super) address: SocketAddr,
    pub(super) admin: SocketAddr,
    /// How it is told what to do.
    pub(super) file: PathBuf,
    /// Where its records are.
    pub(super) store: String,
    /// What its admin API asks for.
    pub(super) token: String,
    log: PathBuf,
    process: GatewayProcess,
}

impl DemoGateway {
    /// Starts it in front of an API, with its files in this directory.
    pub(super) fn start(upstream: SocketAddr, directory: &Path) -> Result<Self, DemoError> {
        let token = random_token()?;
        fs::write(directory.join(TOKEN_FILE), &token).map_err(DemoError::Directory)?;
        let (address, admin) = (free_address()?, free_address()?);
        let (file, log) = (directory.join("gateway.toml"), directory.join("gateway.log"));
        let store = format!("sqlite:{}", directory.join("hapax.db").display());
        let configuration = configuration(address, admin, upstream, &store);
        fs::write(&file, configuration).map_err(DemoError::Directory)?;
        let process = spawn(address, &file, &log)?;
        Ok(Self { address, admin, file, store, token, log, process })
    }

    /// Kills it without a warning, and starts it again.
    pub(super) fn kill_and_restart(&mut self) -> Result<(), DemoError> {
        self.kill()?;
        self.start_again()
    }

    /// Kills it without a warning; does nothing if it has ended already.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        Ok(self.process.kill()?)
    }

    /// Starts it again once it has ended, with the same files.
    pub(super) fn start_again(&mut self) -> Result<(), DemoError> {
        self.process = spawn(self.address, &self.file, &self.log)?;
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for DemoGateway {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.process.kill();
    }
}

/// Starts the process, and returns when it accepts connections.
fn spawn(address: SocketAddr, file: &Path, log: &Path) -> Result<GatewayProcess, DemoError> {
    let mut command = Command::new(this_program()?);
    command.arg("serve").arg("--config").arg(file);
    // What the environment says about some other gateway would count for more than the file.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("HAPAX_") {
            command.env_remove(name);
        }
    }
    let mut process = GatewayProcess::spawn(&mut command, log)?;
    let ready = process.wait_until_ready(READY_LIMIT, || TcpStream::connect(address).is_ok());
    if let Err(error) = ready {
        // It may be alive and only slow; the first error is the one to tell.
        let _ = process.kill();
        return Err(error.into());
    }
    Ok(process)
}

/// A secret that nobody can guess, as text.
pub(super) fn random_token() -> Result<String, DemoError> {
    let mut secret = [0; 16];
    let drawn = getrandom::fill(&mut secret).map_err(io::Error::other);
    drawn.map_err(DemoError::Runtime)?;
    Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The file of this program.
pub(super) fn this_program() -> Result<PathBuf, DemoError> {
    env::current_exe().map_err(DemoError::Program)
}

fn configuration(
    address: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
    store: &str,
) -> String {
    // TOML reads what JSON calls a string.
    let store = json!(store);
    format!(
        r#"# The gateway of `hapax demo`. `hapax check-config` explains it.

listen = "{address}"
admin = "{admin}"
admin_token_file = "{TOKEN_FILE}"
store = {store}
sweep = "1s"              # a killed gateway's work is taken up soon: the demo is short

[upstream]
url = "http://{upstream}"

[tenant]
from = "single"           # one caller; see docs/gateway-config.md for more

[[route]]
match = "POST /payments"
timeout = "1500ms"
lease = "2s"
recovery = "probe"        # not sure whether it was charged? ask the API first:
probe = "{BY_REFERENCE}{{key}}"
"#
    )
}

/// Outgoing connections get their ports from above these: 32768 on Linux, 49152 elsewhere. A port
/// from there could be taken while the gateway is dead.
const PORTS: std::ops::Range<u16> = 18_000..32_000;
const PORT_TRIES_MAX: usize = 100;

/// An address nobody listens on, now or while the gateway is dead.
fn free_address() -> Result<SocketAddr, DemoError> {
    let any = || SocketAddr::from((Ipv4Addr::LOCALHOST, fastrand::u16(PORTS)));
    let mut tries = std::iter::repeat_with(any).take(PORT_TRIES_MAX);
    let free = tries.find(|address| TcpListener::bind(address).is_ok());
    free.ok_or(DemoError::Port)
}
