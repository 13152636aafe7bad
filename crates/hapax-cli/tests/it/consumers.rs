//! Consumers and their dead letters over the admin API, on both databases.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax::{
    Encryption, LocalMasterKey,
    encryption::{EncryptedInbox, TenantKeys},
    sqlite::inbox::Database as File,
};
use hapax_core::{
    Header, Key, Scope,
    inbox::{
        Identity, Inbox, KeptMessage, Letter, LetterReason, Message, MessageArrival, MessageEnd,
        MessageEntered, Proof, RegisteredConsumer,
    },
};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::{
    hapax, text,
    world::{Behaviour, Database, Gateway, Setup, Upstream, ask},
};

const TOKEN: &str = "operate-token";
const READ_TOKEN: &str = "read-token";
const WEEK: Duration = Duration::from_secs(7 * 86_400);
/// The message that explodes.
const POISON: &str = "orders/2";
/// What another message said under the id of the first, larger than what is shown of it.
const OTHER: fn() -> String = || format!("x{}", "\u{e9}".repeat(50_000));

async fn gateway(upstream: &Upstream, setup: impl FnOnce(Setup) -> Setup) -> Gateway {
    let config = format!("admin_read_token = \"{READ_TOKEN}\"\n");
    setup(Setup::new(upstream.address).config(&config).token(TOKEN)).start().await
}

/// What is asked by somebody with this token, and answered: a status and a document.
async fn call(gateway: &Gateway, token: &str, path: &str, order: Option<&Value>) -> (u16, Value) {
    let method = if order.is_some() { "POST" } else { "GET" };
    let body = order.map_or_else(String::new, Value::to_string);
    let request = format!(
        "{method} /v1/consumers{path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = ask(gateway.admin, request).await.unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

async fn look(gateway: &Gateway, path: &str) -> Value {
    let (status, document) = call(gateway, READ_TOKEN, path, None).await;
    assert_eq!(status, 200, "{path}: {document}");
    document
}

/// An order about this letter, as somebody sends it who saw it.
fn about(letter: &Value) -> Value {
    let [id, content, dead_at] = ["message_id", "content", "dead_at"].map(|name| &letter[name]);
    let (who, why) = ("ada", "the mailer is mended");
    json!({ "message_id": id, "content": content, "dead_at": dead_at, "who": who, "why": why })
}

fn with(order: &Value, name: &str, value: Value) -> Value {
    let mut order = order.clone();
    order[name] = value;
    order
}

/// One message is done, one is dead, one is tried again, and another one came under the first one's id.
async fn is_looked_at(gateway: &Gateway) {
    let listed = look(gateway, "").await;
    let mailer = &listed["consumers"][0];
    assert_eq!((&mailer["name"], &mailer["tenant"]), (&json!("mailer"), &json!("messages")));
    assert_eq!((&mailer["retention_seconds"], &listed["next"]), (&json!(604_800.0), &Value::Null));
    for (name, count) in [("remembered", 2), ("retried", 1), ("held", 0), ("dead", 2)] {
        assert_eq!(mailer[name], json!({ "count": count, "more": false }), "{name} of {mailer}");
    }
    let shown = look(gateway, "/mailer?tenant=messages").await;
    assert_eq!((&shown["dead"]["count"], &shown["partitions"]), (&json!(2), &json!([])));
    let retried = look(gateway, "/mailer/retried").await;
    let message = &retried["messages"][0];
    assert_eq!((&message["message_id"], &message["attempts"]), (&json!("orders/3"), &json!(2)));
    assert_eq!(look(gateway, "/mailer/held").await, json!({ "keys": [], "next": null }));
    let first = look(gateway, "/mailer/dead?limit=1").await;
    let next = &first["next"];
    let after = format!("after=orders/1&after_content={}", next["content"].as_str().unwrap());
    assert_eq!(next["message_id"], "orders/1");
    let second = look(gateway, &format!("/mailer/dead?limit=1&{after}")).await;
    assert_eq!(
        (&second["letters"][0]["message_id"], &second["next"]),
        (&json!(POISON), &Value::Null)
    );
    for bad in ["?limit=0", "?after=a", "/orders%2F1", "/orders%2F1?content=12", "?other=1"] {
        let (status, problem) = call(gateway, TOKEN, &format!("/mailer/dead{bad}"), None).await;
        assert_eq!((status, &problem["code"]), (422, &json!("invalid")), "{bad}");
    }
    for (path, code) in [
        ("/nobody", "unknown-consumer"),
        ("/mailer?tenant=acme", "unknown-consumer"),
        ("/mailer/dead/orders%2F9?content=00000000000000000000000000000000", "unknown-letter"),
    ] {
        let (status, problem) = call(gateway, TOKEN, path, None).await;
        assert_eq!((status, &problem["code"]), (404, &json!(code)), "{path}");
    }
}

/// The two letters, with what is in them.
async fn letters(gateway: &Gateway) -> [Value; 2] {
    let listed = look(gateway, "/mailer/dead").await;
    let listed = listed["letters"].as_array().unwrap().clone();
    let [conflict, poison] = <[Value; 2]>::try_from(listed).unwrap();
    for (letter, reason, next) in
        [(&conflict, "id-conflict", "conflict"), (&poison, "poison", "failed")]
    {
        assert_eq!((&letter["reason"], &letter["next_delivery"]), (&json!(reason), &json!(next)));
        assert_eq!(letter.get("payload"), None);
    }
    let open = async |letter: &Value, path: &str| {
        let content = letter["content"].as_str().unwrap();
        look(gateway, &format!("/mailer/dead/{path}?content={content}")).await
    };
    let opened = open(&poison, "orders%2F2").await;
    for (name, value) in [
        ("payload", json!("explosive")),
        ("payload_bytes", json!(9)),
        ("shown_bytes", json!(9)),
        ("source", json!("orders")),
        ("key", json!("k")),
        ("headers", json!([{ "name": "a", "value": "b" }])),
    ] {
        assert_eq!(opened[name], value, "{name} of {opened}");
    }
    assert!(opened["detail"].as_str().unwrap().contains("it explodes"), "{opened}");
    let opened = open(&conflict, "orders%2F1").await;
    assert_eq!(opened["payload_bytes"], OTHER().len());
    assert_eq!(opened["shown_bytes"], (64 << 10) - 1, "the cut went through a letter");
    assert!(OTHER().starts_with(opened["payload"].as_str().unwrap()));
    [conflict, poison]
}

/// Everything that is done is checked first, by somebody who may, about what is still as it was seen.
async fn are_settled(gateway: &Gateway, [conflict, poison]: [Value; 2]) {
    let order = about(&poison);
    let refused = async |token: &str, deed: &str, order: &Value| {
        let (status, problem) = call(gateway, token, &format!("/mailer/{deed}"), Some(order)).await;
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    };
    let told = |status: u16, code: &str| (status, code.to_owned());
    for deed in ["discard", "forgive"] {
        assert_eq!(refused(READ_TOKEN, deed, &order).await, told(403, "read-only"));
        let earlier = with(&order, "dead_at", json!("2020-01-01T00:00:00.000000Z"));
        assert_eq!(refused(TOKEN, deed, &earlier).await, told(409, "changed"));
        for (name, value) in [("why", json!("")), ("content", json!("12")), ("more", json!(1))] {
            let wrong = with(&order, name, value);
            assert_eq!(refused(TOKEN, deed, &wrong).await, told(422, "invalid"), "{wrong}");
        }
    }
    assert_eq!(refused(TOKEN, "forgive", &about(&conflict)).await, told(409, "nothing-to-forgive"));
    for (deed, words) in [
        ("forgive", "Nothing is sent from here"),
        ("discard", "a later delivery is acknowledged and not acted on"),
    ] {
        let dry = with(&order, "dry_run", json!(true));
        let (status, foreseen) = call(gateway, TOKEN, &format!("/mailer/{deed}"), Some(&dry)).await;
        assert_eq!((status, &foreseen["letter"]), (200, &poison));
        assert!(foreseen["would"].as_str().unwrap().contains(words), "{foreseen}");
    }
    assert_eq!(look(gateway, "/mailer").await["dead"]["count"], 2, "nothing was changed so far");
    for (deed, done, letter) in
        [("forgive", "forgiven", &poison), ("discard", "discarded", &conflict)]
    {
        let path = format!("/mailer/{deed}?tenant=messages");
        let (status, changed) = call(gateway, TOKEN, &path, Some(&about(letter))).await;
        let expected = json!({
            "tenant": "messages", "name": "mailer", "message_id": letter["message_id"], "done": done,
        });
        assert_eq!((status, changed), (200, expected));
        assert_eq!(refused(TOKEN, deed, &about(letter)).await, told(404, "unknown-letter"));
    }
    assert_eq!(look(gateway, "/mailer/dead").await, json!({ "letters": [], "next": null }));
    let log = gateway.log();
    assert!(log.contains("a person changed a dead letter"), "{log}");
    assert!(log.contains("who=\"ada\"") && log.contains("the mailer is mended"), "{log}");
}

fn message(id: &str, payload: impl Into<Bytes>) -> Message {
    Message {
        id: Key::parse(id).unwrap(),
        identity: Identity::Business,
        source: "orders".to_owned(),
        key: Some("k".to_owned()),
        version: None,
        payload: payload.into(),
        headers: vec![Header { name: "a".to_owned(), value: Bytes::from_static(b"b") }],
        place: None,
    }
}

/// Delivers a message to a consumer whose handler ends like this; whether it was called.
async fn deliver(
    file: &impl Inbox,
    consumer: &RegisteredConsumer,
    message: Message,
    end: MessageEnd,
) -> bool {
    let message = Arc::new(message);
    let (consumer, proof) = (consumer.clone(), Proof::Record);
    let arrival = MessageArrival { consumer, message, proof, in_turn: false };
    match file.enter(&arrival).await.unwrap() {
        MessageEntered::First(first) => {
            file.leave(first.transaction, &end).await.unwrap();
            true
        }
        MessageEntered::Answer(_) => false,
    }
}

/// A mailer on this file, to which all of that has happened.
pub(crate) async fn mailer_on_file(file: &impl Inbox) -> RegisteredConsumer {
    let mailer = file.enlist(&Scope::parse("mailer").unwrap(), WEEK).await.unwrap();
    assert!(deliver(file, &mailer, message("orders/1", "hello"), MessageEnd::Done).await);
    let letter = |message, reason| Letter {
        kept: KeptMessage::clear(mailer.clone(), Arc::new(message)),
        reason,
    };
    let explosive = message(POISON, "explosive");
    let dead = letter(explosive.clone(), LetterReason::poison(1, "it explodes"));
    assert!(deliver(file, &mailer, explosive, MessageEnd::Dead(dead)).await);
    for _ in 0..2 {
        file.missed(&mailer, &Key::parse("orders/3").unwrap()).await.unwrap();
    }
    let conflict = letter(message("orders/1", OTHER()), LetterReason::id_conflict());
    file.bury(&mailer, &conflict).await.unwrap();
    mailer
}

#[tokio::test]
async fn what_consumers_of_a_file_could_not_act_on_is_seen_and_settled() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = gateway(&upstream, |setup| setup).await;
    assert_eq!(look(&gateway, "").await, json!({ "consumers": [], "next": null }));
    let file = File::open(gateway.store.strip_prefix("sqlite:").unwrap()).unwrap();
    let mailer = mailer_on_file(&file).await;
    is_looked_at(&gateway).await;
    let letters = letters(&gateway).await;
    assert!(!deliver(&file, &mailer, message(POISON, "explosive"), MessageEnd::Done).await);
    are_settled(&gateway, letters).await;
    assert!(deliver(&file, &mailer, message(POISON, "explosive"), MessageEnd::Done).await);
    assert!(!deliver(&file, &mailer, message(POISON, "explosive"), MessageEnd::Done).await);
    assert!(!deliver(&file, &mailer, message("orders/1", "hello"), MessageEnd::Done).await);
}

#[tokio::test]
async fn what_consumers_of_a_postgresql_database_could_not_act_on_is_seen_and_settled() {
    let database = Database::migrated().await;
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let is_first = async |id: &str, content: &str| {
        let call = "SELECT hapax.first_delivery('mailer', $1, $2::text)";
        client.query_one(call, &[&id, &content]).await.unwrap().get::<_, bool>(0)
    };
    let fail = async |id: &str, content: &str, attempts: i32| {
        let call = "SELECT (hapax.fail_delivery('mailer', $1, $2::text, 'it explodes', $3, \
                    key => 'k', source => 'orders', headers => '{\"a\": \"b\"}')).is_over";
        client.query_one(call, &[&id, &content, &attempts]).await.unwrap().get::<_, bool>(0)
    };
    assert!(is_first("orders/1", "hello").await);
    assert!(fail(POISON, "explosive", 1).await);
    assert!(!fail("orders/3", "later", 5).await && !fail("orders/3", "later", 5).await);
    assert!(fail("orders/1", &OTHER(), 5).await);
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = gateway(&upstream, |setup| setup.store(&database.url)).await;
    is_looked_at(&gateway).await;
    let letters = letters(&gateway).await;
    assert!(!is_first(POISON, "explosive").await);
    are_settled(&gateway, letters).await;
    assert!(is_first(POISON, "explosive").await);
    assert!(!is_first(POISON, "explosive").await && !is_first("orders/1", "hello").await);
}

#[tokio::test]
async fn an_encrypted_dead_letter_is_shown_by_a_gateway_that_has_the_master_key() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let encryption = "[encryption]\nmaster_key_file = \"master.key\"\n";
    let key = "01".repeat(32);
    let opened = gateway(&upstream, |setup| {
        setup
            .config(&format!("admin_read_token = \"{READ_TOKEN}\"\n{encryption}"))
            .file("master.key", &key)
    })
    .await;
    let path = opened.store.strip_prefix("sqlite:").unwrap().to_owned();
    let store = hapax::sqlite::Store::open(&path, hapax::sqlite::Options::default()).unwrap();
    let keys = TenantKeys::new(store, Encryption::new(LocalMasterKey::parse(&key).unwrap()));
    let inbox = EncryptedInbox::new(File::open(&path).unwrap(), keys.await.unwrap());
    mailer_on_file(&inbox).await;
    let listed = letters(&opened).await;
    let poison = listed.iter().find(|letter| letter["message_id"] == POISON).unwrap();
    let content = poison["content"].as_str().unwrap();
    let address = format!("/mailer/dead/orders%2F2?content={content}");
    let shown = look(&opened, &address).await;
    assert_eq!((&shown["payload"], &shown["encrypted"]), (&json!("explosive"), &json!(false)));
    let locked = gateway(&upstream, |setup| setup.store(&opened.store)).await;
    let shown = look(&locked, &address).await;
    assert_eq!((&shown["payload"], &shown["headers"]), (&Value::Null, &Value::Null));
    assert_eq!(shown["encrypted"], true, "{shown}");
}

/// What the program prints about the consumers of this store.
fn printed(store: &str, args: &[&str]) -> String {
    let output = hapax(&[&["consumers"], args, &["--store", store]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test]
async fn consumers_and_their_dead_letters_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hapax.db");
    let store = format!("sqlite:{}", path.display());
    mailer_on_file(&File::open(&path).unwrap()).await;
    let listed = printed(&store, &["list"]);
    let mut lines = listed.lines();
    assert!(lines.next().unwrap().starts_with("CONSUMER"), "{listed}");
    let cells: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(cells, ["mailer", "messages", "2", "1", "0", "2"]);
    let dead = printed(&store, &["dead", "mailer", "--limit", "1"]);
    assert!(dead.contains("orders/1") && dead.contains("put aside"), "{dead}");
    assert!(dead.contains("There are more"), "{dead}");
    let dead: Value =
        serde_json::from_str(&printed(&store, &["dead", "mailer", "--json"])).unwrap();
    let ids = dead["letters"].as_array().unwrap().iter().map(|one| one["message_id"].clone());
    assert_eq!(
        (ids.collect::<Vec<_>>(), &dead["next"]),
        (vec![json!("orders/1"), json!(POISON)], &Value::Null)
    );
    let unknown = hapax(&["consumers", "dead", "nobody", "--store", &store]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("see `hapax consumers list`"), "{unknown:?}");
}

#[tokio::test]
async fn a_store_in_memory_has_no_consumers() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = gateway(&upstream, |setup| setup.store("memory:")).await;
    let (status, problem) = call(&gateway, TOKEN, "", None).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no-inbox")));
}
