//! What consumers keep of messages, encrypted.

use std::{future::pending, sync::Arc, time::Duration};

use hapax_core::{Header, inbox::Inbox};
use hapax_encryption::EncryptedInbox;
use hapax_messaging::consumer::{
    Consumer, GapPolicy, GivenUp, Guard, HandlerError, Incoming, Message, Naming, Options, Tx,
};

use super::base::{MASTER, Vault, tenant_of};
use crate::consumer::{
    on_every_base,
    queue::Queue,
    scene::{dead, effects, hurried, incoming, kept, name},
};

on_every_base! {
    a_held_message_is_nowhere_in_the_clear_and_is_acted_on_as_it_was,
    a_dead_letter_is_nowhere_in_the_clear_and_is_shown_to_whoever_has_the_keys,
    a_held_message_of_an_erased_tenant_is_a_dead_letter_and_its_key_goes_on,
    held_messages_are_not_acted_on_without_the_keys,
    a_name_used_for_other_content_is_found_out_among_encrypted_messages,
}

const SECRET: &str = "ada lives at 12 St James's Square";
const SECRET_HEADER: &str = "what a header says of ada";

fn secret(version: i64) -> Incoming {
    let value = SECRET_HEADER.to_owned().into();
    let headers = vec![Header { name: "who".to_owned(), value }];
    let payload = format!("{version} {SECRET}");
    let key = Some("k".to_owned());
    Incoming { key, headers, ..incoming(&format!("m-{version}"), &payload) }
}

fn versioned() -> Naming {
    Naming::default().version(|incoming| {
        let text = std::str::from_utf8(&incoming.payload).ok()?;
        text.split(' ').next()?.parse().ok()
    })
}

fn in_turn() -> Options {
    let gap = GapPolicy { patience: Duration::from_secs(600), then: GivenUp::DeadLetter };
    let guard = Some(Guard::EveryOne { first: 1, held_max: 100 });
    Options { guard, gap, concurrency: 1, ..hurried() }
}

/// Acts on a message, and on none that is not as it was sent.
async fn act<V: Vault>(
    mut tx: Tx<<V::Inbox as Inbox>::Transaction>,
    message: Arc<Message>,
) -> Result<(), HandlerError> {
    assert!(message.payload.ends_with(SECRET.as_bytes()), "{message:?}");
    assert_eq!(message.header("who"), Some(SECRET_HEADER));
    V::act(&mut tx, message.id.as_str()).await
}

async fn consume<V: Vault, I>(inbox: I, queue: &Queue, options: Options)
where
    I: Inbox<Transaction = <V::Inbox as Inbox>::Transaction>,
{
    let consumer = Consumer::new(name(), inbox, act::<V>).options(options).naming(versioned());
    consumer.run(queue.clone(), pending()).await.unwrap();
}

/// Messages of these versions, each in a life of its own.
async fn deliver<V: Vault>(vault: &V, versions: &[i64]) {
    let queue = Queue::default();
    versions.iter().for_each(|version| queue.push(secret(*version)));
    consume::<V, _>(vault.vault().await, &queue, in_turn()).await;
}

async fn a_held_message_is_nowhere_in_the_clear_and_is_acted_on_as_it_was<V: Vault>() {
    let vault = V::create().await;
    deliver(&vault, &[2, 3]).await;
    assert_eq!(kept(&vault).await, ["m-2 held", "m-3 held"]);
    assert!(vault.holds("m-2").await, "what is clear would be found");
    for secret in [SECRET, SECRET_HEADER] {
        assert!(!vault.holds(secret).await, "{secret}");
    }
    deliver(&vault, &[1]).await;
    assert_eq!(effects(&vault).await, ["m-1", "m-2", "m-3"]);
}

async fn a_dead_letter_is_nowhere_in_the_clear_and_is_shown_to_whoever_has_the_keys<V: Vault>() {
    let vault = V::create().await;
    let queue = Queue::default();
    queue.push(secret(1));
    // Without a version it cannot have its turn, and is put aside without a record.
    queue.push(Incoming { key: None, ..secret(2) });
    let options = Options { guard: None, ..in_turn() };
    let explode = |_: Tx<<V::Inbox as Inbox>::Transaction>, _: Arc<Message>| async {
        Err::<(), HandlerError>("it explodes".into())
    };
    let consumer = Consumer::new(name(), vault.vault().await, explode).options(options);
    consumer.run(queue.clone(), pending()).await.unwrap();
    deliver_without_version(&vault).await;
    assert_eq!(dead(&vault).await, ["m-1 poison", "m-2 poison", "m-3 no-version"]);
    for secret in [SECRET, SECRET_HEADER] {
        assert!(!vault.holds(secret).await, "{secret}");
    }
    let store = vault.store().await;
    for id in ["m-1", "m-2", "m-3"] {
        let content = format!("{} {SECRET}", &id[2..]);
        let as_it_is = V::letter(&store, id, &content).await;
        assert!(as_it_is.is_sealed(), "{as_it_is:?}");
        let inbox = EncryptedInbox::new(store.clone(), vault.keys(MASTER).await);
        let shown = V::letter(&inbox, id, &content).await;
        assert_eq!(shown.payload, content.as_bytes()[..4], "no more than was asked for");
        assert_eq!(shown.letter.payload_bytes, content.len() as u64);
        assert_eq!(shown.headers.unwrap()[0].value, SECRET_HEADER);
    }
}

async fn deliver_without_version<V: Vault>(vault: &V) {
    let queue = Queue::default();
    queue.push(Incoming { key: None, ..secret(3) });
    consume::<V, _>(vault.vault().await, &queue, in_turn()).await;
}

async fn a_held_message_of_an_erased_tenant_is_a_dead_letter_and_its_key_goes_on<V: Vault>() {
    let vault = V::create().await;
    let tenants = |message: &Message| {
        let tenant = if message.id.as_str() == "m-2" { "acme" } else { "umbrella" };
        Some(tenant_of(tenant))
    };
    for versions in [&[2, 3][..], &[1]] {
        let queue = Queue::default();
        versions.iter().for_each(|version| queue.push(secret(*version)));
        let inbox = vault.vault().await.tenants(tenants);
        consume::<V, _>(inbox, &queue, in_turn()).await;
        if versions.len() == 2 {
            assert_eq!(kept(&vault).await, ["m-2 held", "m-3 held"]);
            vault.erase("acme").await;
        }
    }
    assert_eq!(effects(&vault).await, ["m-1", "m-3"]);
    assert_eq!(dead(&vault).await, ["m-2 unreadable"]);
    assert_eq!(kept(&vault).await, ["m-1 done", "m-2 failed", "m-3 done"]);
}

async fn held_messages_are_not_acted_on_without_the_keys<V: Vault>() {
    let vault = V::create().await;
    deliver(&vault, &[2]).await;
    let queue = Queue::default();
    queue.push(secret(1));
    consume::<V, _>(vault.inbox(), &queue, in_turn()).await;
    assert_eq!(effects(&vault).await, ["m-1"]);
    assert_eq!(kept(&vault).await, ["m-1 done", "m-2 held"]);
    deliver(&vault, &[3]).await;
    assert_eq!(effects(&vault).await, ["m-1", "m-2", "m-3"]);
}

async fn a_name_used_for_other_content_is_found_out_among_encrypted_messages<V: Vault>() {
    let vault = V::create().await;
    deliver(&vault, &[2]).await;
    let queue = Queue::default();
    let payload = format!("2 and so does {SECRET}").into();
    queue.push(secret(2));
    queue.push(Incoming { payload, ..secret(2) });
    consume::<V, _>(vault.vault().await, &queue, in_turn()).await;
    assert_eq!(kept(&vault).await, ["m-2 held"]);
    assert_eq!(dead(&vault).await, ["m-2 id-conflict"]);
}
