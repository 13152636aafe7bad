//! Health, readiness and metrics of a relay that runs alone.

use std::fs;

use super::{Receiver, Shop};
use crate::{
    operating::Scrape,
    world::{Answer, ask, free_address, until},
};

async fn get(admin: std::net::SocketAddr, path: &str) -> Option<Answer> {
    ask(admin, format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await
}

#[tokio::test]
async fn a_relay_is_ready_while_its_destination_takes_what_it_is_sent_and_counts_it() {
    let (shop, admin, address) = (Shop::new(), free_address(), free_address());
    shop.emit("orders", "1", 0..3);
    let (to, at) = (format!("http://{address}/events"), admin.to_string());
    let relay = shop.relay(&[
        "--to",
        &to,
        "--name",
        "billing",
        "--secret-env",
        "SHOP_SECRET",
        "--admin",
        &at,
    ]);
    until("it to say what is in the way", async || {
        let Some(answer) = get(admin, "/readyz").await else { return false };
        answer.status == 503 && answer.text().contains("\"destination\"")
    })
    .await;
    // Its pages answer before it says where they are.
    let said = format!("health and metrics on http://{admin}");
    until("it to say where its pages are", async || relay.log().contains(&said)).await;
    let alive = get(admin, "/healthz").await.unwrap();
    assert_eq!((alive.status, alive.text()), (200, "{\"alive\":true}"));
    assert_eq!(
        get(admin, "/v1/operations").await.unwrap().status,
        404,
        "there is nothing to change"
    );
    let receiver = Receiver::start_at(address).await;
    until("it to be ready", async || get(admin, "/readyz").await.unwrap().status == 200).await;
    until("the events to be counted", async || {
        let page = Scrape::at(admin).await;
        page.value("hapax_outbox_sent_total{destination=\"billing\"}").as_deref() == Some("3")
    })
    .await;
    let page = Scrape::at(admin).await;
    for metric in ["lanes", "lag_events", "troubled", "in_memory_events"] {
        let series = format!("hapax_outbox_{metric}{{destination=\"billing\"}}");
        assert!(page.value(&series).is_some(), "{series} is not shown");
    }
    assert!(page.samples().any(|(series, _)| series.starts_with("hapax_build_info")));
    drop(receiver);
}

#[tokio::test]
async fn the_file_says_where_the_pages_are_and_an_address_that_is_none_is_refused() {
    let (shop, admin) = (Shop::new(), free_address());
    let file = shop.path("relay.toml");
    let toml = |admin: &str| {
        format!("admin = \"{admin}\"\n[[destination]]\nname = \"tape\"\nto = \"stdout:\"\n")
    };
    fs::write(&file, toml(&admin.to_string())).unwrap();
    let relay = shop.relay(&["--config", file.to_str().unwrap()]);
    until("it to be ready", async || {
        get(admin, "/readyz").await.is_some_and(|answer| answer.status == 200)
    })
    .await;
    drop(relay);
    fs::write(&file, toml("8082")).unwrap();
    let refused =
        crate::hapax(&["relay", "--store", &shop.store(), "--config", file.to_str().unwrap()]);
    let said = crate::text(&refused.stderr);
    assert!(said.contains("`admin` cannot be \"8082\"; write an address and a port"), "{said}");
}
