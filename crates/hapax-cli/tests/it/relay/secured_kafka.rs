//! A Kafka that speaks TLS and lets nobody in who does not sign in.

use std::fs;

use hapax_services::kafka::{self, Security};
use rcgen::CertifiedKey;

use super::Shop;
use crate::{hapax, text, world::until};

#[tokio::test]
async fn events_reach_a_broker_that_asks_for_tls_and_a_password() {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let security = Security {
        certificate: cert.pem(),
        key: signing_key.serialize_pem(),
        user: "ada".to_owned(),
        password: "s@cret:1".to_owned(),
    };
    let broker = tokio::task::spawn_blocking(move || kafka::start_secured(&security));
    let broker = broker.await.unwrap().unwrap();
    let shop = Shop::new();
    let authority = shop.path("ca.pem");
    fs::write(&authority, cert.pem()).unwrap();
    let port = broker.address().port();
    let at = format!("localhost:{port}");
    let to =
        format!("kafka+ssl://ada:s%40cret:1@{at}?sasl=SCRAM-SHA-512&ca={}", authority.display());
    shop.emit("orders", "4711", 0..5);
    let mut relay = shop.relay(&["--to", &to]);
    let name = format!("kafka+ssl://{at}");
    until("all to arrive", async || shop.outbox(&["list"])["destinations"][0]["behind"] == 0).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    assert!(relay.log().contains(&name) && !relay.log().contains("cret"), "{}", relay.log());

    let args =
        ["audit", "--store", &shop.store(), "--destination", &name, "--at", &to, "--drained"];
    let output = hapax(&args);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}
