//! What one language began, the others replay.

use hapax_sdk_tests::{Agent, Sdk};

use crate::world::{World, kind, once, paid, pay, told, with};

#[tokio::test(flavor = "multi_thread")]
async fn what_one_language_began_every_other_one_replays() {
    let world = World::new(Sdk::Python, "psycopg").await;
    let all = [(Sdk::Python, "psycopg"), (Sdk::Node, "pg"), (Sdk::Go, "pgx"), (Sdk::Java, "jdbc")];
    let mut agents = Vec::new();
    for (sdk, driver) in all {
        if sdk.is_there() {
            agents.push((sdk, Agent::start(sdk, driver, &world.url()).await));
        }
    }
    for first in 0..agents.len() {
        let key = world.key("across");
        let heard = agents[first].1.ask(&once(&key, &pay(&key))).await.unwrap();
        assert_eq!(heard, told(&paid(), false), "begun in {}", agents[first].0);
        for (sdk, agent) in &mut agents {
            assert_eq!(
                agent.ask(&once(&key, &pay(&key))).await.unwrap(),
                told(&paid(), true),
                "in {sdk}"
            );
            let other = serde_json::json!({ "request": "{\"cents\":101}" });
            let heard = agent.ask(&with(once(&key, &pay(&key)), &other)).await.unwrap();
            assert_eq!(kind(&heard), "mismatch", "in {sdk}: {heard}");
        }
        assert_eq!(world.effects(&key).await, 1);
    }
}
