//! What systemd is told about the program, where it asks (`Type=notify`): sd_notify(3).

#[cfg(target_os = "linux")]
use std::os::{linux::net::SocketAddrExt as _, unix::ffi::OsStrExt as _};
use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::net::{SocketAddr, UnixDatagram},
    process,
    time::Duration,
};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// How the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceState {
    /// It serves.
    Ready,
    /// It reads its configuration again.
    Reloading,
    /// It was told to stop.
    Stopping,
    /// It is alive.
    Alive,
}

impl ServiceState {
    fn message(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1",
            Self::Reloading => b"RELOADING=1",
            Self::Stopping => b"STOPPING=1",
            Self::Alive => b"WATCHDOG=1",
        }
    }
}

/// Whoever started the program, if it wants to be told.
#[derive(Debug)]
pub(super) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn find() -> io::Result<Self> {
        let socket = match env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) {
            Some(path) => Some((UnixDatagram::unbound()?, address(&path)?)),
            None => None,
        };
        Ok(Self { socket })
    }

    /// Tells it, unless nobody asked. One that is not there any more cannot be told anything.
    pub(super) fn tell(&self, state: ServiceState) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(state.message(), address) {
            tracing::debug!(%error, ?state, "the service manager was not told");
        }
    }
}

fn address(path: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = path.as_bytes() {
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(path)
}

/// When to give the sign of life that the service manager waits for (`WatchdogSec=`): twice as often
/// as it must. `None` if it waits for none from this process.
pub(super) fn signs_of_life() -> Option<Interval> {
    let is_ours = env::var("WATCHDOG_PID").is_ok_and(|pid| pid == process::id().to_string());
    let is_anybodys = env::var_os("WATCHDOG_PID").is_none();
    let micros = env::var("WATCHDOG_USEC").ok()?.parse().ok().filter(|micros| *micros > 1)?;
    let mut signs = interval(Duration::from_micros(micros) / 2);
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    (is_ours || is_anybodys).then_some(signs)
}
