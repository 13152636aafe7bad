//! Loopback ports for servers.

use std::{
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

use crate::error::ServiceError;

/// Systems give outgoing connections ports above these. A client that keeps trying while its server
/// is away would sooner or later be given the server's own port, and keep it from coming back. So would the
/// gateways of the program's tests, whose ports begin where these end, and the demo's, which come after them.
const RANGE: Range<u16> = 12_000..15_000;
const TRIES: u32 = 1000;
/// How often a server is started at most because somebody else took its port.
const STARTS: u32 = 5;

/// `N` different ports that nobody listens on now.
pub(crate) fn free<const N: usize>() -> Result<[u16; N], ServiceError> {
    let mut found = [0; N];
    // Held until all are found, so that none is found twice.
    let mut held = Vec::with_capacity(N);
    for port in &mut found {
        let (number, listener) = listen()?;
        *port = number;
        held.push(listener);
    }
    Ok(found)
}

/// Whether a server's log says that somebody else was faster.
pub(crate) fn taken(log: &str) -> bool {
    let log = log.to_ascii_lowercase();
    ["address already in use", "eaddrinuse"].iter().any(|sign| log.contains(sign))
}

/// Starts a server; on other ports where somebody else took one between our look and the server's.
pub(crate) fn until_free<T>(
    mut start: impl FnMut() -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    let mut starts = 0;
    loop {
        starts += 1;
        match start() {
            Err(ServiceError::PortTaken { .. }) if starts < STARTS => {}
            started => return started,
        }
    }
}

fn listen() -> Result<(u16, TcpListener), ServiceError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let port = fastrand::u16(RANGE);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok((port, listener)),
            Err(_) if tries < TRIES => {}
            Err(error) => return Err(ServiceError::io("find a free port")(error)),
        }
    }
}
