//! A process that is killed between any two lines leaves nothing or everything.

use hapax_sdk_tests::{Agent, KillPoint, Proxy};
use serde_json::{Value, json};

use crate::world::{World, once, paid, pay, told, with};

/// Every point at which another part of an operation is at the server, in their order.
const POINTS: [KillPoint; 6] = [
    KillPoint::Before("hapax.begin"),
    // Begun, and nothing written.
    KillPoint::Before("INSERT INTO effects"),
    // Written, and nothing emitted.
    KillPoint::Before("hapax.emit"),
    // Emitted, and not finished.
    KillPoint::Before("hapax.finish"),
    // Finished, and not committed.
    KillPoint::Before("commit"),
    KillPoint::Committed,
];

/// A process of its own for each point, killed while it stands still there.
pub(crate) async fn check(world: &World) {
    let mut next = world.agent().await;
    // Two at a time, because starting one is most of the work.
    for points in POINTS.chunks(2) {
        let [one, other] = [points[0], points[1]].map(|point| stand_still(world, point));
        let (one, other) = tokio::join!(one, other);
        for (point, (agent, key)) in points.iter().zip([one, other]) {
            agent.kill().await;
            nothing_or_everything_is_left(world, &mut next, *point, &key).await;
        }
    }
}

/// An agent that has come to this point with a key of its own.
async fn stand_still(world: &World, point: KillPoint) -> (Agent, String) {
    let (proxy, key) = (Proxy::start(world.address()).await, world.key("killed"));
    let mut agent = world.agent_at(&world.url_by(proxy.address)).await;
    proxy.hold(point);
    agent.tell(&command(&key)).await;
    proxy.until_reached().await;
    (agent, key)
}

fn command(key: &str) -> Value {
    let event = json!({ "topic": "paid", "key": key, "payload": "{\"cents\":100}" });
    let command = once(key, &with(pay(key), &json!({ "emit": event })));
    // What was killed is rolled back as soon as the server notices.
    with(command, &json!({ "wait_ms": 30_000 }))
}

async fn nothing_or_everything_is_left(
    world: &World,
    next: &mut Agent,
    point: KillPoint,
    key: &str,
) {
    let is_done = point == KillPoint::Committed;
    assert_eq!(parts(world, key).await, [i64::from(is_done); 3], "killed at {point:?}");
    let heard = next.ask(&command(key)).await.unwrap();
    assert_eq!(heard, told(&paid(), is_done), "after a kill at {point:?}");
    assert_eq!(parts(world, key).await, [1; 3], "asked again after a kill at {point:?}");
}

/// How many effects, events and records there are of a key.
async fn parts(world: &World, key: &str) -> [i64; 3] {
    let count = |table: &str| format!("SELECT count(*) FROM hapax.{table} WHERE key = '{key}'");
    let (events, records) = (count("outbox"), count("operations"));
    [world.effects(key).await, world.number(&events).await, world.number(&records).await]
}
