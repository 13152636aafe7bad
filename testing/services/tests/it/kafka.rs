use std::{
    io::{self, Read},
    net::TcpStream,
};

use hapax_services::kafka;

use crate::broker::{check, exchange};

/// Asks which requests the broker knows, in the oldest form of the question.
fn hello(socket: &mut TcpStream) -> io::Result<()> {
    const API_VERSIONS: [u8; 2] = [0, 18];
    let (version, correlation, no_client): ([u8; 2], _, _) = ([0; 2], *b"hapx", [0xFF; 2]);
    let request = [&API_VERSIONS[..], &version, &correlation, &no_client].concat();
    let framed = [&u32::try_from(request.len()).unwrap().to_be_bytes()[..], &request].concat();
    let length = u32::from_be_bytes(exchange(socket, &framed)?);
    let mut answer = vec![0; usize::try_from(length).unwrap()];
    socket.read_exact(&mut answer)?;
    assert_eq!(&answer[..4], correlation);
    assert_eq!(&answer[4..6], [0, 0], "an error code");
    let known = u32::from_be_bytes(answer[6..10].try_into().unwrap());
    assert!(known > 40, "it knows {known} requests");
    Ok(())
}

#[test]
fn kafka_is_back_on_the_same_port_after_a_kill_and_leaves_nothing_behind() {
    check(kafka::start, hello);
}
