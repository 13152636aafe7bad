//! What must hold for every broker.

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use hapax_services::{
    ServiceError,
    broker::{Broker, Mode},
};

/// How long a frozen server is given to show that it answers after all.
const FROZEN: Duration = Duration::from_millis(300);
/// How long a running one is given.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a broker; reading from it ends after a while.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(patience))?;
    Ok(socket)
}

/// Sends `hello` and reads `N` bytes.
pub(crate) fn exchange<const N: usize>(
    socket: &mut TcpStream,
    hello: &[u8],
) -> io::Result<[u8; N]> {
    socket.write_all(hello)?;
    let mut answer = [0; N];
    socket.read_exact(&mut answer)?;
    Ok(answer)
}

/// Starts a broker, freezes it, kills it and stops it; `hello` fails unless it is answered rightly.
#[track_caller]
pub(crate) fn check(
    start: fn() -> Result<Broker, ServiceError>,
    hello: fn(&mut TcpStream) -> io::Result<()>,
) {
    let mut broker = start().unwrap();
    let (address, url, dir) = (broker.address(), broker.url().to_owned(), broker.dir().to_owned());
    let greet = |patience| connect(address, patience).and_then(|mut socket| hello(&mut socket));
    assert!(url.contains(&address.to_string()), "{url}");
    greet(PATIENCE).unwrap();

    broker.pause().unwrap();
    assert!(greet(FROZEN).is_err(), "frozen, and yet it answers");
    broker.unpause();
    greet(PATIENCE).unwrap();

    let first = broker.pid().unwrap();
    broker.restart(Mode::Kill).unwrap();
    assert_eq!((broker.address(), broker.url()), (address, url.as_str()));
    assert_ne!(broker.pid(), Some(first));
    greet(PATIENCE).unwrap();

    assert!(!processes_of(&dir).is_empty());
    broker.stop(Mode::Orderly).unwrap();
    assert_eq!((broker.pid(), broker.pids()), (None, Vec::new()));
    assert!(greet(FROZEN).is_err(), "stopped, and yet it answers");
    assert_eq!(processes_of(&dir), Vec::<u32>::new());

    broker.resume().unwrap();
    greet(PATIENCE).unwrap();
    drop(broker);
    assert!(greet(FROZEN).is_err(), "dropped, and yet it answers");
    assert_eq!(processes_of(&dir), Vec::<u32>::new());
    assert!(!dir.exists());
}

/// The processes whose command line names `dir`.
pub(crate) fn processes_of(dir: &Path) -> Vec<u32> {
    let dir = dir.to_str().unwrap();
    let named = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(dir).then_some(pid)
    });
    named.collect()
}
