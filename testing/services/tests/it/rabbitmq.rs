use std::{io, net::TcpStream};

use hapax_services::rabbitmq;

use crate::broker::{check, exchange};

/// Opens the protocol; the server says `Connection.Start`.
fn hello(socket: &mut TcpStream) -> io::Result<()> {
    let frame: [u8; 11] = exchange(socket, b"AMQP\0\x00\x09\x01")?;
    assert_eq!(frame[..3], [1, 0, 0], "a method, on no channel");
    assert_eq!(frame[7..], [0, 10, 0, 10], "Connection.Start");
    Ok(())
}

#[test]
fn rabbitmq_is_back_on_the_same_port_after_a_kill_and_leaves_nothing_behind() {
    check(rabbitmq::start, hello);
}
