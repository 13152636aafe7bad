//! Sockets that whoever started the program has opened for it: systemd's `LISTEN_FDS`.
//!
//! They stay open while the program is replaced, so that nobody is refused meanwhile.

use std::{env, io};

use hapax_gateway::Listeners;
use listenfd::ListenFd;

/// The name of a socket for the admin side, and of one for clients.
const ADMIN: &str = "admin";
const CLIENTS: &str = "clients";

/// Takes the sockets that were passed to this process, by their names (`FileDescriptorName=`). One
/// alone is for clients, whatever it is called.
pub(super) fn take() -> Result<Listeners, PassedSocketError> {
    let mut passed = ListenFd::from_env();
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<_> = names.split(':').collect();
    let mut listeners = Listeners::default();
    for at in 0..passed.len() {
        let name = names.get(at).copied().unwrap_or_default();
        let place = match name {
            ADMIN => &mut listeners.admin,
            CLIENTS => &mut listeners.clients,
            _ if passed.len() == 1 => &mut listeners.clients,
            other => return Err(PassedSocketError::Unnamed { name: other.to_owned() }),
        };
        if place.is_some() {
            return Err(PassedSocketError::Twice { name: name.to_owned() });
        }
        let unusable = |cause| PassedSocketError::Unusable { name: name.to_owned(), cause };
        *place = passed.take_tcp_listener(at).map_err(unusable)?;
    }
    Ok(listeners)
}

/// Why a socket that was passed cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassedSocketError {
    #[error(
        "a socket was passed that is called `{name}`; with several, write \
         `FileDescriptorName={CLIENTS}` into the unit of one and `{ADMIN}` into the other"
    )]
    Unnamed { name: String },
    #[error(
        "two sockets were passed that are called `{name}`; one address each, by one \
         `ListenStream=`, is what a gateway takes"
    )]
    Twice { name: String },
    #[error("the socket `{name}` that was passed is none that listens for TCP connections")]
    Unusable {
        name: String,
        #[source]
        cause: io::Error,
    },
    #[error("a socket was passed for the admin side, which is off; write `admin` into the file")]
    AdminIsOff,
}
