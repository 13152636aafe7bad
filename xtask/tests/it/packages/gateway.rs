//! A gateway from a package, in front of an API that counts.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use super::world::run;

/// Shows that this program knows its version, and that a retry through it is answered with the first
/// answer.
pub(super) fn replays(program: &Path) {
    let version = run(Command::new(program).arg("--version"));
    assert!(version.starts_with("hapax 0.1.0\n"), "{version}");
    let place = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(program, place.path(), upstream());
    let first = gateway.pay();
    assert!(first.starts_with("HTTP/1.1 201") && first.ends_with("charge 1"), "{first}");
    let again = gateway.pay();
    assert!(again.contains("idempotent-replayed: true") && again.ends_with("charge 1"), "{again}");
}

struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Gateway {
    fn start(program: &Path, place: &Path, upstream: SocketAddr) -> Self {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "off"]);
        command.args(["--upstream", &format!("http://{upstream}")]);
        command.current_dir(place).env_remove("HAPAX_STORE").stdin(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let address = line.split("serving http://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("{line:?} says nothing of an address"));
        let address = address.trim().trim_end_matches(',').parse().unwrap();
        // Whatever else it says has to go somewhere.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address }
    }

    fn pay(&self) -> String {
        let mut socket = TcpStream::connect(self.address).unwrap();
        let request = "POST /charges HTTP/1.1\r\nhost: a\r\nauthorization: ada\r\n\
                       idempotency-key: \"order-17\"\r\nconnection: close\r\n\
                       content-length: 3\r\n\r\nten";
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // By its own id: a shim in Node passes it on to the program.
        let _ = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// An API that counts its charges.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, socket) in (1..).zip(listener.incoming().flatten()) {
            charge(socket, number);
        }
    });
    address
}

fn charge(mut socket: TcpStream, number: u32) {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !request.ends_with(b"ten") {
        let count = socket.read(&mut bytes).unwrap();
        request.extend(&bytes[..count]);
    }
    let body = format!("charge {number}");
    let length = body.len();
    let head = "HTTP/1.1 201 Created\r\nconnection: close";
    write!(socket, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
}
