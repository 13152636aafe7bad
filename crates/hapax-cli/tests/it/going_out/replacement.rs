//! Two gateways behind HAProxy or nginx, as the files that are handed out configure these: replaced one after the other
//! under load, or killed.

use std::{fs, path::PathBuf, time::Duration};

use hapax_services::{haproxy::LoadBalancer, nginx::ReverseProxy, proxy::BalancedServer};
use tokio::task::spawn_blocking;

use super::clients::{Clients, some_load};
use crate::{
    hapax,
    operating::Scrape,
    text,
    world::{Behaviour, Database, Gateway, Setup, Upstream, program_before, until},
};

fn handed_out(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/proxies");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn behind(gateways: &[Gateway; 2]) -> [BalancedServer; 2] {
    gateways
        .each_ref()
        .map(|gateway| BalancedServer { address: gateway.address, health: gateway.admin })
}

async fn upstream(deduplicates: bool) -> Upstream {
    let takes = Duration::from_millis(50);
    Upstream::start(Behaviour { takes, deduplicates, ..Behaviour::default() }).await
}

async fn up(balancer: &LoadBalancer, number: usize, expected: bool) {
    until("HAProxy to notice", async || balancer.is_up(number).unwrap() == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_and_every_key_runs_once_while_gateways_are_replaced() {
    let upstream = upstream(false).await;
    let database = Database::create().await;
    let setup = || Setup::new(upstream.address).store(&database.url).program(program_before());
    let mut gateways = [setup().start().await, setup().start().await];
    let servers = behind(&gateways);
    let balancer =
        spawn_blocking(move || LoadBalancer::start(&handed_out("haproxy.cfg"), &servers));
    let balancer = balancer.await.unwrap().unwrap();
    for number in 0..gateways.len() {
        up(&balancer, number, true).await;
    }
    let clients = Clients::start(balancer.address());
    some_load(&upstream).await;
    let migrated = hapax(&["migrate", "--store", &database.url]);
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    for (number, gateway) in gateways.iter_mut().enumerate() {
        some_load(&upstream).await;
        gateway.signal("TERM");
        assert!(gateway.ended().await, "{}", gateway.log());
        gateway.upgrade();
        gateway.configure("drain_delay = \"3s\"\n");
        gateway.run().await;
        up(&balancer, number, true).await;
    }
    some_load(&upstream).await;
    // With `drain_delay`, HAProxy is told before anybody is refused.
    gateways[0].signal("TERM");
    up(&balancer, 0, false).await;
    assert!(gateways[0].ended().await, "{}", gateways[0].log());
    some_load(&upstream).await;
    clients.stop_satisfied(&upstream).await;
}

/// An upstream that deduplicates is sent what nobody knows of, by whoever is left.
const RESENT: &str = "sweep = \"300ms\"\n[defaults]\ntimeout = \"1s\"\nlease = \"1500ms\"\n\
    recovery = \"resend\"\nin_flight = \"wait\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_nobody_hears_of_a_gateway_that_was_killed_and_one_that_was_stopped() {
    let upstream = upstream(true).await;
    let database = Database::create().await;
    let setup = || Setup::new(upstream.address).store(&database.url).config(RESENT);
    let mut gateways = [setup().start().await, setup().start().await];
    let servers = behind(&gateways);
    let proxy = spawn_blocking(move || ReverseProxy::start(&handed_out("nginx.conf"), &servers));
    let proxy = proxy.await.unwrap().unwrap();
    let clients = Clients::start(proxy.address());
    some_load(&upstream).await;
    gateways[0].kill();
    some_load(&upstream).await;
    gateways[0].run().await;
    // nginx passes over who has failed, for `fail_timeout`; without the other there would be nobody until then.
    until("nginx to come back to it", async || {
        let page = Scrape::of(&gateways[0]).await;
        let mut answered =
            page.samples().filter(|(series, _)| series.starts_with("hapax_requests_total"));
        answered.any(|(_, count)| count != "0")
    })
    .await;
    gateways[1].signal("TERM");
    assert!(gateways[1].ended().await, "{}", gateways[1].log());
    some_load(&upstream).await;
    clients.stop_satisfied(&upstream).await;
}
