//! Where the password of a connection comes from. It is looked for anew for each one.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{io::AsyncReadExt, process::Command, time::timeout};
use tokio_postgres::config::Host;

use super::{
    error::{AddressError, ConnectFailure},
    settings::ServerPlace,
};

/// How long a command may take to print a password.
const COMMAND_MAX: Duration = Duration::from_secs(10);
/// The longest password taken from a command; tokens of clouds have a few thousand bytes.
const PASSWORD_BYTES_MAX: u64 = 64 << 10;

/// A password, which nothing shows.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(Vec<u8>);

impl Password {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Password {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Where a password came from, as people are told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PasswordOrigin {
    /// The address itself.
    Address,
    /// The service that the address names.
    Service,
    /// The variable `PGPASSWORD`.
    Environment,
    /// A password file.
    File(PathBuf),
    /// `hapax_password_command`.
    Command,
}

impl fmt::Display for PasswordOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("of its address"),
            Self::Service => f.write_str("of its service file"),
            Self::Environment => f.write_str("of PGPASSWORD"),
            Self::File(path) => write!(f, "in {}", path.display()),
            Self::Command => f.write_str("that hapax_password_command prints"),
        }
    }
}

/// Where to look for a password.
#[derive(Debug, Clone, Default)]
pub(super) struct PasswordSettings {
    pub(super) given: Option<(Password, PasswordOrigin)>,
    pub(super) command: Option<String>,
    pub(super) passfile: Option<PathBuf>,
    /// As whom one logs in who names no user.
    pub(super) login: Option<String>,
}

/// What was found for one host.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundPassword {
    pub(super) password: Option<(Password, PasswordOrigin)>,
    /// A file that was passed over, because others may read it.
    pub(super) passed_over: Option<PathBuf>,
}

impl PasswordSettings {
    /// What its command prints now, if there is one.
    pub(super) async fn printed(&self) -> Result<Option<Password>, ConnectFailure> {
        let Some(command) = &self.command else { return Ok(None) };
        timeout(COMMAND_MAX, run(command))
            .await
            .unwrap_or(Err(ConnectFailure::PasswordCommand("took longer than ten seconds")))
            .map(Some)
    }

    /// The password for this host; what a command has printed counts first.
    pub(super) fn find(
        &self,
        printed: Option<&Password>,
        place: &ServerPlace,
        user: Option<&str>,
        dbname: Option<&str>,
    ) -> Result<FoundPassword, AddressError> {
        let printed = printed.map(|password| (password.clone(), PasswordOrigin::Command));
        if let Some(known) = printed.or_else(|| self.given.clone()) {
            return Ok(FoundPassword { password: Some(known), passed_over: None });
        }
        let Some(path) = &self.passfile else { return Ok(FoundPassword::default()) };
        let user = user.or(self.login.as_deref()).unwrap_or_default();
        let host = match &place.host {
            Host::Tcp(host) => host.clone(),
            Host::Unix(_) => "localhost".to_owned(),
        };
        let wanted = [host.as_str(), &place.port.to_string(), dbname.unwrap_or(user), user];
        in_file(path, wanted)
    }
}

/// Looks a password up as libpq does: the first line that fits, in a file that is its owner's alone.
fn in_file(path: &Path, wanted: [&str; 4]) -> Result<FoundPassword, AddressError> {
    let unreadable = |source| AddressError::File { path: path.to_owned(), source };
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(FoundPassword::default());
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !about.is_file() {
        return Ok(FoundPassword::default());
    }
    if about.mode() & 0o077 != 0 {
        return Ok(FoundPassword { password: None, passed_over: Some(path.to_owned()) });
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let password = text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line)?;
        let [rest @ .., password] = &fields;
        let fits = rest.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| Password(password.clone().into_bytes()))
    });
    let origin = PasswordOrigin::File(path.to_owned());
    Ok(FoundPassword { password: password.map(|password| (password, origin)), passed_over: None })
}

/// `host:port:database:user:password`, in which `\:` and `\\` stand for themselves.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut fields = [const { String::new() }; 5];
    let mut at = 0;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => fields[at].extend(characters.next()),
            ':' if at < 4 => at += 1,
            other => fields[at].push(other),
        }
    }
    (at == 4).then_some(fields)
}

/// Runs a command of the shell. What it prints is the password, up to the end of its last line; what it
/// complains about is nobody's, since a password may be in it.
async fn run(command: &str) -> Result<Password, ConnectFailure> {
    let failed = |_| ConnectFailure::PasswordCommand("could not be run");
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.stdout(Stdio::piped()).process_group(0).spawn().map_err(failed)?;
    let _ended = child.id().map(EndsWithItsChildren);
    let mut printed = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(PASSWORD_BYTES_MAX + 1).read_to_end(&mut printed).await.map_err(failed)?;
    }
    if printed.len() as u64 > PASSWORD_BYTES_MAX {
        return Err(ConnectFailure::PasswordCommand("printed more than a password"));
    }
    if !child.wait().await.map_err(failed)?.success() {
        return Err(ConnectFailure::PasswordCommand("failed"));
    }
    while printed.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        printed.pop();
    }
    if printed.is_empty() {
        return Err(ConnectFailure::PasswordCommand("printed nothing"));
    }
    Ok(Password(printed))
}

/// Ends the processes of a command that nobody waits for any more.
struct EndsWithItsChildren(u32);

impl Drop for EndsWithItsChildren {
    fn drop(&mut self) {
        let group = i32::try_from(self.0).ok().and_then(Pid::from_raw);
        // One that has ended by itself is not there to be killed.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
}
