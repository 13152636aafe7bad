//! What becomes of a message.

use serde_json::{Value, json};

use crate::world::World;

fn deliver(id: &str, content: &str, work: &Value) -> Value {
    json!({ "do": "deliver", "consumer": "mailer", "message_id": id, "content": content, "attempts_max": 3, "work": work })
}

fn outcome(word: &str, acted: bool) -> Value {
    json!({ "outcome": word, "acted": acted })
}

pub(crate) async fn check(world: &World) {
    acted_on_once(world).await;
    the_last_attempt_makes_a_letter(world).await;
    failed_for_good_leaves_no_letter(world).await;
    other_content_is_put_aside(world).await;
    a_killed_consumer_leaves_nothing(world).await;
}

async fn acted_on_once(world: &World) {
    let (mut agent, id) = (world.agent().await, world.key("message"));
    let command = deliver(&id, "hello", &json!({ "write": id }));
    assert_eq!(agent.ask(&command).await.unwrap(), outcome("done", true));
    assert_eq!(agent.ask(&command).await.unwrap(), outcome("done", false));
    assert_eq!(world.agent().await.ask(&command).await.unwrap(), outcome("done", false));
    assert_eq!(world.effects(&id).await, 1);
}

async fn the_last_attempt_makes_a_letter(world: &World) {
    let (mut agent, id) = (world.agent().await, world.key("poison"));
    let command = deliver(&id, "hello", &json!({ "write": id, "raise": "no such address" }));
    for expected in [("again", true), ("again", true), ("done", true), ("done", false)] {
        assert_eq!(agent.ask(&command).await.unwrap(), outcome(expected.0, expected.1));
    }
    assert_eq!((world.effects(&id).await, letters(world, &id, "poison").await), (0, 1));
}

async fn letters(world: &World, id: &str, reason: &str) -> i64 {
    let text = format!(
        "SELECT count(*) FROM hapax.inbox_dead_readable WHERE message_id = '{id}' AND reason = '{reason}'"
    );
    world.number(&text).await
}

async fn failed_for_good_leaves_no_letter(world: &World) {
    let (mut agent, id) = (world.agent().await, world.key("failed"));
    let command =
        deliver(&id, "hello", &json!({ "write": id, "refuse": { "reason": "no address" } }));
    assert_eq!(agent.ask(&command).await.unwrap(), outcome("done", true));
    assert_eq!(agent.ask(&command).await.unwrap(), outcome("done", false));
    assert_eq!(world.effects(&id).await, 0);
    let text = format!(
        "SELECT count(*) FROM hapax.inbox_readable WHERE message_id = '{id}' AND state = 'failed' AND reason = 'no address'"
    );
    assert_eq!(world.number(&text).await, 1);
}

async fn other_content_is_put_aside(world: &World) {
    let (mut agent, id) = (world.agent().await, world.key("conflict"));
    let work = json!({ "write": id });
    assert_eq!(agent.ask(&deliver(&id, "hello", &work)).await.unwrap(), outcome("done", true));
    assert_eq!(agent.ask(&deliver(&id, "other", &work)).await.unwrap(), outcome("done", false));
    assert_eq!((world.effects(&id).await, letters(world, &id, "id-conflict").await), (1, 1));
}

async fn a_killed_consumer_leaves_nothing(world: &World) {
    let (mut agent, id) = (world.agent().await, world.key("killed"));
    assert_eq!(agent.ask(&deliver(&id, "hello", &json!({ "write": id, "die": true }))).await, None);
    let mut next = world.agent().await;
    assert_eq!(
        next.ask(&deliver(&id, "hello", &json!({ "write": id }))).await.unwrap(),
        outcome("done", true)
    );
    assert_eq!(world.effects(&id).await, 1);
}
