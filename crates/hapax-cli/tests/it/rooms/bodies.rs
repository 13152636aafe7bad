//! Room for the bodies of requests.

use super::{
    fields,
    frames::{BAD_REQUEST, Fate, Frames, data, head},
    stream,
};
use crate::{
    wire::World,
    world::{Answer, ask, post},
};

/// Room for one request of the largest size, an eighth of it for each connection.
const NARROW: &str = r#"
[limits]
buffered = "1MiB"
body_timeout = "30s"

[[route]]
match = "POST /pay"
"#;

const MIB: &str = "1048576";

/// What somebody else hears who sends this much.
async fn other(world: &World, key: &str, len: usize) -> Answer {
    ask(world.gateway.address, post("/pay", key, &"x".repeat(len))).await.unwrap()
}

#[tokio::test]
async fn connections_that_announce_much_and_send_little_keep_nobody_out() {
    let world = World::start(NARROW).await;
    for (name, length, sent) in [
        ("announced-nothing-sent", Some(("content-length", MIB)), &b""[..]),
        ("unknown-nothing-sent", None, b""),
        ("announced-one-byte-sent", Some(("content-length", MIB)), b"x"),
        ("unknown-one-byte-sent", None, b"x"),
    ] {
        let mut attackers = Vec::new();
        for connection in 0..4 {
            let mut frames = Frames::open(world.gateway.address).await;
            for number in 0..100 {
                let key = format!("{name}-{connection}-{number}");
                let key = [("idempotency-key", key.as_str())];
                let fields = fields("/pay", &[&key[..], length.as_slice()].concat());
                frames.send(&head(stream(number), 0, &fields)).await;
                if !sent.is_empty() {
                    frames.send(&data(stream(number), 0, sent)).await;
                }
            }
            attackers.push(frames);
        }
        for len in [10, 500 << 10] {
            let key = format!("{len}-after-{name}");
            let answer = other(&world, &key, len).await;
            assert_eq!((answer.status, answer.is_replay()), (201, false), "{name}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn what_two_connections_send_leaves_room_for_others() {
    let world = World::start(NARROW).await;
    let mut attackers = Vec::new();
    for connection in 0..2 {
        let mut frames = Frames::open(world.gateway.address).await;
        // Until then the server takes less than it will.
        frames.settle().await;
        for number in 0..100 {
            let key = format!("{connection}-{number}");
            let fields = fields("/pay", &[("idempotency-key", &key), ("content-length", MIB)]);
            let piece = data(stream(number), 0, &[b'x'; 8 << 10]);
            frames.send(&[head(stream(number), 0, &fields), piece].concat()).await;
        }
        // The last one is refused for want of room, so all before it were read.
        let fate = frames.fate(stream(99)).await;
        assert!(matches!(fate, Fate::Answered(first) if first != BAD_REQUEST), "{fate:?}");
        attackers.push(frames);
    }
    let answer = other(&world, "k", 500 << 10).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}
