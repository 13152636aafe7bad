use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use hapax_services::redis::{RedisServer, Sync, version};

#[test]
fn redis_says_when_it_syncs_and_leaves_nothing_behind() {
    assert!(version().unwrap().contains('.'));
    for (sync, setting) in [(Sync::Always, "always"), (Sync::EverySecond, "everysec")] {
        let server = RedisServer::start(sync).unwrap();
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.write_all(b"CONFIG GET appendfsync\r\n").unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap()).lines();
        let said: Vec<_> = lines.take(5).map(Result::unwrap).collect();
        assert_eq!(said[4], setting, "{said:?}");
        let (dir, address) = (server.dir().to_owned(), server.address());
        drop(server);
        assert!(!dir.exists());
        assert!(TcpStream::connect(address).is_err());
    }
}
