//! What is remembered of callers.

use crate::{
    wire::{ROUTES, World},
    world::Connection,
};

#[tokio::test]
async fn callers_that_are_refused_leave_nothing_of_their_heads_in_memory() {
    const CALLERS: usize = 1000;
    const GROWTH_KIB_MAX: u64 = 16 << 10;
    let world = World::start(ROUTES).await;
    let ballast = "x".repeat(56 << 10);
    let mut connection = Connection::open(world.gateway.address).await;
    let mut refused = async |caller: usize| {
        let head = format!(
            "POST /pay HTTP/1.1\r\nhost: a\r\nauthorization: caller {caller}\r\n\
             x-ballast: {ballast}\r\ncontent-length: 0\r\n\r\n"
        );
        connection.send(head).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!((answer.status, answer.code().as_deref()), (400, Some("key-missing")));
    };
    refused(0).await;
    let before = world.gateway.memory_kib();
    for caller in 1..CALLERS {
        refused(caller).await;
    }
    let growth = world.gateway.memory_kib().saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB for {CALLERS} callers");
}
