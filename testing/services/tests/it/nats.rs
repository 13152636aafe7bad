use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
};

use hapax_services::{broker::Mode, nats};

use crate::broker::{PATIENCE, check, connect};

fn hello(socket: &mut TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    let info = lines.next().unwrap()?;
    assert!(info.contains(r#""jetstream":true"#), "{info}");
    socket.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n")?;
    assert_eq!(lines.next().unwrap()?, "PONG");
    Ok(())
}

/// Sends `payload` to `subject` and returns what is answered.
fn request(socket: &mut TcpStream, subject: &str, payload: &str) -> io::Result<String> {
    let len = payload.len();
    write!(socket, "SUB answers 1\r\nPUB {subject} answers {len}\r\n{payload}\r\n")?;
    socket.write_all(b"UNSUB 1 1\r\n")?;
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    while !lines.next().unwrap()?.starts_with("MSG answers 1 ") {}
    lines.next().unwrap()
}

#[test]
fn nats_is_back_on_the_same_port_after_a_kill_and_leaves_nothing_behind() {
    check(nats::start, hello);
}

#[test]
fn what_jetstream_has_acknowledged_survives_a_kill() {
    let mut nats = nats::start().unwrap();
    let mut socket = connect(nats.address(), PATIENCE).unwrap();
    hello(&mut socket).unwrap();
    let stream = r#"{"name":"orders","subjects":["orders.*"],"storage":"file"}"#;
    let made = request(&mut socket, "$JS.API.STREAM.CREATE.orders", stream).unwrap();
    assert!(made.contains(r#""did_create":true"#), "{made}");
    let kept = request(&mut socket, "orders.1", "paid").unwrap();
    assert!(kept.contains(r#""seq":1"#), "{kept}");

    nats.restart(Mode::Kill).unwrap();
    let mut socket = connect(nats.address(), PATIENCE).unwrap();
    hello(&mut socket).unwrap();
    let found = request(&mut socket, "$JS.API.STREAM.INFO.orders", "").unwrap();
    assert!(found.contains(r#""messages":1"#), "{found}");
}
