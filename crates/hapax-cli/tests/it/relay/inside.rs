//! Relays inside `hapax serve`.

use hapax::{Event, sqlite};

use super::{Receiver, SECRET, outbox};
use crate::{
    operating::Scrape,
    world::{Behaviour, Setup, Upstream, ask, free_address, until},
};

#[tokio::test]
async fn a_gateway_relays_what_is_emitted_into_its_store_and_shows_how_far_it_is() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let receiver = Receiver::start().await;
    let config = format!(
        "[[relay]]\nname = \"billing\"\nto = \"http://{}/events\"\nsecret_file = \"secret\"\n",
        receiver.address
    );
    let setup = Setup::new(upstream.address).config(&config).file("secret", SECRET);
    let mut gateway = setup.start().await;
    let path = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
    let connection = rusqlite::Connection::open(path).unwrap();
    for number in 0..2 {
        let event = Event::new("orders", "1", number.to_string()).unwrap();
        sqlite::emit(&connection, &event).unwrap();
    }
    until("both to arrive", async || receiver.taken() == ["0", "1"]).await;
    let metrics = async || {
        let asked = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
        asked.unwrap().text().to_owned()
    };
    let sent = "hapax_outbox_sent_total{destination=\"billing\"} 2";
    until("the relay to hear that both were taken", async || metrics().await.contains(sent)).await;
    let page = metrics().await;
    for line in [
        "hapax_outbox_parked_events{destination=\"billing\"} 0",
        "hapax_outbox_troubled{destination=\"billing\"} 0",
        "hapax_outbox_lag_seconds{destination=\"billing\"} 0",
        "# TYPE hapax_outbox_outages_total counter",
    ] {
        assert!(page.contains(line), "no {line} in:\n{page}");
    }
    gateway.signal("TERM");
    assert!(gateway.ended().await, "{}", gateway.log());
    let billing = &outbox(&gateway.store, &["list"])["destinations"][0];
    assert_eq!((&billing["behind"], &billing["relays"]), (&0.into(), &0.into()), "{billing}");
}

#[tokio::test]
async fn an_outage_of_a_destination_is_warned_about_once_however_many_lanes_meet_it() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = format!(
        "[[relay]]\nname = \"late\"\nto = \"http://{}/events\"\nsecret_file = \"secret\"\n",
        free_address()
    );
    let setup = Setup::new(upstream.address).config(&config).file("secret", SECRET);
    let gateway = setup.start().await;
    let path = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
    let connection = rusqlite::Connection::open(path).unwrap();
    for key in 0..200 {
        let event = Event::new("orders", key.to_string(), "1").unwrap();
        sqlite::emit(&connection, &event).unwrap();
    }
    let met = r#"hapax_outbox_outages_total{destination="late"}"#;
    until("many sends to meet the outage", async || {
        let met = Scrape::of(&gateway).await.value(met);
        met.is_some_and(|met| met.parse::<u32>().unwrap() >= 10)
    })
    .await;
    let log = gateway.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("takes nothing")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("WARN") && warnings[0].contains("late"), "{log}");
}
