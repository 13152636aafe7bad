//! What an operation comes to, however often it is asked for and whoever dies.

use std::time::Duration;

use hapax_sdk_tests::{KillPoint, Proxy};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::world::{World, kind, once, paid, pay, told, with};

pub(crate) async fn check(world: &World) {
    replayed_byte_for_byte(world).await;
    one_of_sixteen_runs(world).await;
    another_request_is_told(world).await;
    a_failure_is_kept_without_its_writes(world).await;
    what_raises_leaves_nothing(world).await;
    who_waits_too_long_is_told(world).await;
    every_isolation_level_runs_one(world).await;
    a_lost_commit_is_found_out(world).await;
    events_are_there_if_it_committed(world).await;
    what_is_in_doubt_or_gone_is_told(world).await;
}

async fn replayed_byte_for_byte(world: &World) {
    let (mut agent, key) = (world.agent().await, world.key("replay"));
    let command = once(&key, &pay(&key));
    assert_eq!(agent.ask(&command).await.unwrap(), told(&paid(), false), "the first");
    assert_eq!(agent.ask(&command).await.unwrap(), told(&paid(), true), "the second");
    let mut other = world.agent().await;
    assert_eq!(other.ask(&command).await.unwrap(), told(&paid(), true), "another process");
    assert_eq!(world.effects(&key).await, 1);
}

async fn one_of_sixteen_runs(world: &World) {
    let key = world.key("storm");
    let (mut one, mut other) = (world.agent().await, world.agent().await);
    let command = storm(8, &key, &json!({}));
    one.tell(&command).await;
    other.tell(&command).await;
    let mut answers = answers(&one.heard().await.unwrap());
    answers.extend(self::answers(&other.heard().await.unwrap()));
    assert_eq!(answers.iter().filter(|told| told["answer"]["replayed"] == false).count(), 1);
    assert!(answers.iter().all(|told| told["answer"]["body"] == paid()["body"]), "{answers:?}");
    assert_eq!((answers.len(), world.effects(&key).await), (16, 1));
}

fn storm(times: u32, key: &str, members: &Value) -> Value {
    let work = with(pay(key), &json!({ "pause_ms": 20 }));
    let how = json!({ "do": "storm", "times": times, "wait_ms": 20_000 });
    with(with(once(key, &work), &how), members)
}

fn answers(heard: &Value) -> Vec<Value> {
    heard["answers"].as_array().unwrap_or_else(|| panic!("no answers: {heard}")).clone()
}

async fn another_request_is_told(world: &World) {
    let (mut agent, key) = (world.agent().await, world.key("mismatch"));
    agent.ask(&once(&key, &pay(&key))).await.unwrap();
    for (members, differs) in [
        (json!({ "request": "{\"cents\":999}" }), json!(["body"])),
        (json!({ "query": "dry=1" }), json!(["query"])),
        (json!({ "method": "PUT", "path": "/other" }), json!(["method", "path"])),
    ] {
        let heard = agent.ask(&with(once(&key, &pay(&key)), &members)).await.unwrap();
        assert_eq!((kind(&heard), &heard["error"]["differs"]), ("mismatch", &differs), "{heard}");
    }
    assert_eq!(world.effects(&key).await, 1);
}

async fn a_failure_is_kept_without_its_writes(world: &World) {
    let mut agent = world.agent().await;
    let no = json!({ "status": 402, "headers": {}, "body": "no money" });
    for member in ["refuse", "answer"] {
        let key = world.key("failure");
        let command = once(&key, &json!({ "write": key, member: no }));
        assert_eq!(agent.ask(&command).await.unwrap(), told(&no, false), "{member}");
        let other_work = once(&key, &pay(&key));
        assert_eq!(agent.ask(&other_work).await.unwrap(), told(&no, true), "{member}");
        assert_eq!(world.effects(&key).await, 0, "{member}");
    }
    let key = world.key("later");
    let later = json!({ "status": 503, "headers": {}, "body": "later" });
    let command = once(&key, &json!({ "write": key, "answer": later }));
    assert_eq!(agent.ask(&command).await.unwrap(), told(&later, false));
    assert_eq!(agent.ask(&once(&key, &pay(&key))).await.unwrap(), told(&paid(), false), "free");
    assert_eq!(world.effects(&key).await, 1);
}

async fn what_raises_leaves_nothing(world: &World) {
    let (mut agent, key) = (world.agent().await, world.key("raise"));
    let heard =
        agent.ask(&once(&key, &json!({ "write": key, "raise": "out of paper" }))).await.unwrap();
    assert_eq!(kind(&heard), "raised", "{heard}");
    assert!(heard["error"]["message"].as_str().unwrap().contains("out of paper"), "{heard}");
    assert_eq!(agent.ask(&once(&key, &pay(&key))).await.unwrap(), told(&paid(), false));
    assert_eq!(world.effects(&key).await, 1);
}

/// Waits until a slow commit is under way.
async fn until_committing(world: &World) {
    let text = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND wait_event = 'PgSleep'";
    let (client, patience) = (world.client().await, Duration::from_secs(30));
    let committing = async {
        while client.query_one(text, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(patience, committing).await.expect("a commit that takes its time");
}

async fn who_waits_too_long_is_told(world: &World) {
    let (mut first, mut second) = (world.agent().await, world.agent().await);
    let (key, warm) = (world.key("slow-busy"), world.key("warm"));
    // An interpreter's or a machine's first call would take longer than the commit.
    assert_eq!(second.ask(&once(&warm, &pay(&warm))).await.unwrap(), told(&paid(), false));
    first.tell(&once(&key, &pay(&key))).await;
    until_committing(world).await;
    let heard = second.ask(&with(once(&key, &pay(&key)), &json!({ "wait_ms": 1 }))).await.unwrap();
    assert_eq!(kind(&heard), "busy", "{heard}");
    assert!(heard["error"]["retry_after"].as_f64().unwrap() >= 1.0, "{heard}");
    assert_eq!(first.heard().await.unwrap(), told(&paid(), false));
    assert_eq!(second.ask(&once(&key, &pay(&key))).await.unwrap(), told(&paid(), true));
}

async fn every_isolation_level_runs_one(world: &World) {
    let mut agent = world.agent().await;
    for level in ["read committed", "repeatable read", "serializable"] {
        let key = world.key("level");
        let heard = agent.ask(&storm(6, &key, &json!({ "isolation": level }))).await.unwrap();
        let answers = answers(&heard);
        assert!(
            answers.iter().all(|told| told["answer"]["body"] == paid()["body"]),
            "{level}: {heard}"
        );
        assert_eq!((answers.len(), world.effects(&key).await), (6, 1), "{level}");
    }
}

async fn a_lost_commit_is_found_out(world: &World) {
    let proxy = Proxy::start(world.address()).await;
    let mut agent = world.agent_at(&world.url_by(proxy.address)).await;
    // The pool has what it needs: what commits next is the work.
    let key = world.key("warm");
    agent.ask(&once(&key, &pay(&key))).await.unwrap();
    for point in [KillPoint::Committed, KillPoint::Before("commit")] {
        let key = world.key("lost");
        proxy.cut(point);
        let heard = agent.ask(&once(&key, &pay(&key))).await.unwrap();
        assert!(proxy.was_reached(), "{point:?}");
        assert_eq!(heard["answer"]["body"], paid()["body"], "{point:?}: {heard}");
        assert_eq!(world.effects(&key).await, 1, "{point:?}");
    }
}

async fn events_are_there_if_it_committed(world: &World) {
    let (mut agent, key) = (world.agent().await, world.key("event"));
    let event = json!({ "topic": "paid", "key": key, "payload": "{\"cents\":100}" });
    let raising = json!({ "emit": event, "raise": "no" });
    agent.ask(&once(&key, &raising)).await.unwrap();
    let refusing = json!({ "emit": event, "refuse": { "status": 409, "headers": {}, "body": "" } });
    agent.ask(&once(&world.key("event"), &refusing)).await.unwrap();
    let count = format!("SELECT count(*) FROM hapax.outbox WHERE key = '{key}'");
    assert_eq!(world.number(&count).await, 0);
    let emitting = with(pay(&key), &json!({ "emit": event }));
    assert_eq!(agent.ask(&once(&key, &emitting)).await.unwrap(), told(&paid(), false));
    agent.ask(&once(&key, &emitting)).await.unwrap();
    assert_eq!(world.number(&count).await, 1);
}

/// At the end, because the clock does not come back.
async fn what_is_in_doubt_or_gone_is_told(world: &World) {
    let mut agent = world.agent().await;
    let (doubt, gone) = (world.key("doubt"), world.key("gone"));
    world
        .run(&format!(
            "SELECT hapax.begin('shop', 'POST /payments', '{doubt}', '{{\"cents\":100}}', 'POST', '/payments')"
        ))
        .await;
    let short = json!({ "retention_s": 1, "tombstone_s": 86_400 });
    assert_eq!(
        agent.ask(&with(once(&gone, &pay(&gone)), &short)).await.unwrap(),
        told(&paid(), false)
    );
    assert_eq!(
        kind(
            &agent.ask(&with(once(&doubt, &pay(&doubt)), &json!({ "wait_ms": 1 }))).await.unwrap()
        ),
        "busy"
    );
    world.step_clock(120).await;
    for (key, word, effects) in [(&doubt, "in_doubt", 0), (&gone, "gone", 1)] {
        let heard = agent.ask(&once(key, &pay(key))).await.unwrap();
        assert_eq!(kind(&heard), word, "{heard}");
        assert_eq!(world.effects(key).await, effects, "{word}");
    }
}
