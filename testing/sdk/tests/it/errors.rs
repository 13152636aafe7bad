//! What is told where something is not as it should be; nothing is half-written.

use std::net::TcpListener;

use hapax_sdk_tests::{Agent, Sdk};
use hapax_services::pgbouncer::{PoolMode, Pooler};
use serde_json::{Value, json};

use crate::world::{World, kind, once, paid, pay, told, with};

pub(crate) async fn check(world: &World) {
    within_a_transaction_of_the_callers(world).await;
    once_inside_of_once_is_refused(world).await;
    what_cannot_be_a_key_is_refused(world).await;
    a_record_that_cannot_be_read_is_told(world).await;
    a_role_without_rights_is_told(world).await;
    a_server_that_is_away_is_told(world).await;
    a_pool_of_statements_is_told(world).await;
    a_schema_that_does_not_fit_is_told(world).await;
}

async fn refused(agent: &mut Agent, command: &Value, expected: &str) {
    let heard = agent.ask(command).await.unwrap();
    assert_eq!(kind(&heard), expected, "{heard}");
    assert!(heard["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{heard}");
}

async fn within_a_transaction_of_the_callers(world: &World) {
    let mut agent = world.agent().await;
    let within =
        |key: &str, how: &str| with(once(key, &pay(key)), &json!({ "do": "within", "how": how }));
    let key = world.key("within");
    assert_eq!(agent.ask(&within(&key, "transaction")).await.unwrap(), told(&paid(), false));
    assert_eq!(agent.ask(&within(&key, "transaction")).await.unwrap(), told(&paid(), true));
    assert_eq!(world.effects(&key).await, 1);
    for (how, expected) in [
        ("autocommit", "not_in_a_transaction"),
        ("aborted", "transaction_aborted"),
        ("twice", "begun_already"),
    ] {
        let key = world.key(how);
        refused(&mut agent, &within(&key, how), expected).await;
        assert_eq!(world.effects(&key).await, 0, "{how}");
        assert_eq!(
            agent.ask(&once(&key, &pay(&key))).await.unwrap(),
            told(&paid(), false),
            "{how}: the key is free"
        );
    }
    let key = world.key("rollback");
    assert_eq!(agent.ask(&within(&key, "rollback")).await.unwrap(), told(&paid(), false));
    assert_eq!(world.effects(&key).await, 0);
    assert_eq!(
        agent.ask(&once(&key, &pay(&key))).await.unwrap(),
        told(&paid(), false),
        "the key is free"
    );
}

/// Its own transaction would be committed whatever becomes of the one around it. A framework's transactions are joined instead.
async fn once_inside_of_once_is_refused(world: &World) {
    let mut agent = world.agent().await;
    let nested = |outer: &str, inner: &str, by: &str| {
        let command = with(once(inner, &pay(inner)), &json!({ "by": by }));
        once(outer, &with(pay(outer), &json!({ "nested": command })))
    };
    let joins = world.driver == "spring";
    for (by, is_same_key) in [("same", true), ("same", false), ("another", true)] {
        let (outer, other) = (world.key("outer"), world.key("inner"));
        let inner = if is_same_key { &outer } else { &other };
        let command = nested(&outer, inner, by);
        if joins && !is_same_key {
            assert_eq!(agent.ask(&command).await.unwrap(), told(&paid(), false), "{by}");
            assert_eq!((world.effects(&outer).await, world.effects(inner).await), (1, 1), "{by}");
            continue;
        }
        let expected = if joins { "begun_already" } else { "nested" };
        refused(&mut agent, &command, expected).await;
        for key in [&outer, inner] {
            assert_eq!(world.effects(key).await, 0, "{by}");
        }
        assert_eq!(
            agent.ask(&once(&outer, &pay(&outer))).await.unwrap(),
            told(&paid(), false),
            "{by}: the key is free"
        );
    }
}

async fn what_cannot_be_a_key_is_refused(world: &World) {
    let mut agent = world.agent().await;
    if matches!(world.sdk, Sdk::Python | Sdk::Node) {
        for key in [json!(17), json!(null), json!(["k"]), json!(true)] {
            let command = with(once("k", &pay("invalid")), &json!({ "key": key }));
            refused(&mut agent, &command, "invalid").await;
        }
    }
    for key in ["", "   ", "caf\u{e9}", "two\nlines", &"k".repeat(256)] {
        refused(&mut agent, &once(key, &pay("invalid")), "invalid").await;
    }
    let key = world.key("invalid");
    for members in [json!({ "tenant": "" }), json!({ "scope": "s".repeat(1025) })] {
        refused(&mut agent, &with(once(&key, &pay("invalid")), &members), "invalid").await;
    }
    refused(
        &mut agent,
        &once(
            &key,
            &json!({ "write": "invalid", "answer": { "status": 99, "headers": {}, "body": "" } }),
        ),
        "invalid",
    )
    .await;
    assert_eq!(world.effects("invalid").await, 0);
}

async fn a_record_that_cannot_be_read_is_told(world: &World) {
    let mut agent = world.agent().await;
    for (change, expected) in [("answer = NULL", "damaged"), ("format = format + 1", "newer")] {
        let key = world.key(expected);
        agent.ask(&once(&key, &pay(&key))).await.unwrap();
        world.run(&format!("UPDATE hapax.operations SET {change} WHERE key = '{key}'")).await;
        refused(&mut agent, &once(&key, &pay(&key)), expected).await;
        assert_eq!(world.effects(&key).await, 1);
    }
}

async fn a_role_without_rights_is_told(world: &World) {
    let (key, role) = (world.key("rights"), format!("guest_{}", world.driver.replace('-', "_")));
    world
        .run(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN; GRANT ALL ON effects TO {role}"
        ))
        .await;
    let mut agent = world.agent_at(&world.url_as(&role, world.address())).await;
    refused(&mut agent, &once(&key, &pay(&key)), "not_permitted").await;
    drop(agent);
    world.run(&format!("SELECT hapax.grant_functions('{role}'); SELECT hapax.bind_tenants('{role}', '{{shop}}')")).await;
    let mut agent = world.agent_at(&world.url_as(&role, world.address())).await;
    assert_eq!(agent.ask(&once(&key, &pay(&key))).await.unwrap(), told(&paid(), false));
    refused(
        &mut agent,
        &with(once(&key, &pay(&key)), &json!({ "tenant": "other" })),
        "not_permitted",
    )
    .await;
    drop(agent);
    world
        .run(&format!(
            "SELECT hapax.unbind_tenants('{role}'); DROP OWNED BY {role}; DROP ROLE {role}"
        ))
        .await;
}

async fn a_server_that_is_away_is_told(world: &World) {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut agent = world.agent_at(&world.url_by(nobody)).await;
    refused(&mut agent, &once("k", &pay("away")), "unavailable").await;
}

async fn a_pool_of_statements_is_told(world: &World) {
    let pooler = Pooler::start(&world.url(), PoolMode::Statement).unwrap();
    let mut agent = world.agent_at(pooler.url()).await;
    refused(&mut agent, &once(&world.key("pooled"), &pay("pooled")), "statement_pooling").await;
    assert_eq!(world.effects("pooled").await, 0);
}

async fn a_schema_that_does_not_fit_is_told(world: &World) {
    let empty = World::empty(world.sdk, world.driver).await;
    let mut agent = empty.agent().await;
    refused(&mut agent, &once("k", &pay("missing")), "schema_missing").await;
    let mut agent = world.agent().await;
    let key = world.key("version");
    for (version, works_with) in [(9, 9), (99, 99)] {
        world
            .run(&format!("UPDATE hapax.meta SET version = {version}, works_with = {works_with}"))
            .await;
        refused(&mut agent, &json!({ "do": "schema_version" }), "schema_version").await;
        refused(&mut world.agent().await, &once(&key, &pay(&key)), "schema_version").await;
    }
    world.run("UPDATE hapax.meta SET version = 10, works_with = 10").await;
    assert_eq!(agent.ask(&json!({ "do": "schema_version" })).await.unwrap(), json!({ "ok": true }));
    assert_eq!(world.effects(&key).await, 0);
}
