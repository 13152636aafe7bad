//! Relays inside `hapax serve`.

use hapax::{Event, sqlite};

use super::{Receiver, SECRET, outbox};
use crate::world::{Behaviour, Setup, Upstream, ask, until};

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
    let metrics = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let page = metrics.text();
    for line in [
        "hapax_outbox_sent_total{destination=\"billing\"} 2",
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
