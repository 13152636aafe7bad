//! Encrypted events, sent by `hapax relay` and by relays inside `hapax serve`.

use std::fs;

use hapax::{Encryption, Event, LocalMasterKey, Tenant, encryption::TenantKeys, sqlite};

use super::{Receiver, SECRET, Shop};
use crate::{
    hapax, text,
    world::{Behaviour, Setup, Upstream, until},
};

const MASTER: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// Emits an encrypted event of a tenant, which says this.
async fn emit(path: &str, tenant: &str, key: &str, says: &str) {
    let store = sqlite::Store::open(path, sqlite::Options::default()).unwrap();
    let encryption = Encryption::new(LocalMasterKey::parse(MASTER).unwrap());
    let keys = TenantKeys::new(store, encryption).await.unwrap();
    let sealer = keys.sealer(&Tenant::parse(tenant).unwrap()).await.unwrap();
    let event = sealer.seal(&Event::new("orders", key, says.to_owned()).unwrap()).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    sqlite::emit(&connection, &event).unwrap();
}

fn path(shop: &Shop, name: &str) -> String {
    shop.path(name).display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_sends_encrypted_events_given_the_key_by_a_flag_or_its_file() {
    let shop = Shop::new();
    fs::write(shop.path("master.key"), MASTER).unwrap();
    let (file, key) = (path(&shop, "hapax.db"), path(&shop, "master.key"));
    emit(&file, "acme", "1", "1").await;
    let mut keyless = shop.relay(&["--to", "stdout:", "--name", "tape"]);
    until("it to miss the key", async || keyless.log().contains("given no master key")).await;
    keyless.terminate();
    assert_eq!(keyless.ended().await, 0);
    assert!(keyless.written().is_empty(), "ciphertext is not sent");
    let mut relay = shop.relay(&["--to", "stdout:", "--name", "tape", "--master-key-file", &key]);
    until("the event to come", async || relay.written() == ["1"]).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0);
    let config = "[encryption]\nmaster_key_file = \"master.key\"\n\n\
                  [[destination]]\nname = \"tape\"\nto = \"stdout:\"\nencrypted_only = true\n";
    fs::write(shop.path("relay.toml"), config).unwrap();
    shop.emit("orders", "2", 7..8);
    emit(&file, "acme", "2", "2").await;
    let relay = shop.relay(&["--config", &path(&shop, "relay.toml")]);
    until("the next event to come", async || relay.written() == ["1", "2"]).await;
    let parked = shop.outbox(&["parked", "tape"]);
    let reason = "it is not encrypted, and only encrypted events are sent here";
    assert_eq!((&parked["parked"][0]["reason"], &parked["next"]), (&reason.into(), &().into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_with_another_master_key_does_not_start_and_names_the_one_it_needs() {
    let shop = Shop::new();
    fs::write(shop.path("other.key"), "02".repeat(32)).unwrap();
    emit(&path(&shop, "hapax.db"), "acme", "1", "1").await;
    let key = path(&shop, "other.key");
    let mut relay = shop.relay(&["--to", "stdout:", "--master-key-file", &key]);
    assert_eq!(relay.ended().await, 1);
    assert!(relay.log().contains("wrapped by the master key local:"), "{}", relay.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_sends_encrypted_events_and_a_parked_one_is_shown_with_the_key() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let receiver = Receiver::start().await;
    receiver.refuse("2");
    let config = format!(
        "[encryption]\nmaster_key_file = \"master.key\"\n\n[[relay]]\nname = \"billing\"\n\
         to = \"http://{}/events\"\nsecret_file = \"secret\"\nrefusals = 1\n",
        receiver.address
    );
    let setup = Setup::new(upstream.address).config(&config);
    let gateway = setup.file("secret", SECRET).file("master.key", MASTER).start().await;
    let file = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
    emit(&file, "acme", "1", "1").await;
    until("it to arrive", async || receiver.taken() == ["1"]).await;
    emit(&file, "acme", "2", "2").await;
    let parked = |args: &[&str]| {
        let args = [&["outbox", "parked", "billing", "--payload", "--store", &gateway.store], args];
        let output = hapax(&args.concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    until("it to be parked", async || parked(&[]).contains("orders")).await;
    let locked = parked(&[]);
    assert!(locked.contains("encrypted; give --master-key-file"), "{locked}");
    let key = gateway.path("master.key").display().to_string();
    let shown = parked(&["--master-key-file", &key]);
    assert!(shown.trim_end().ends_with("application/json\n2"), "{shown}");
}
