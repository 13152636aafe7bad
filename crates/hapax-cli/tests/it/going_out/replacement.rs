//! Two gateways behind HAProxy, replaced one after the other under load.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use hapax_services::haproxy::{BalancedServer, LoadBalancer};
use tokio::task::{JoinSet, spawn_blocking};

use crate::world::{Behaviour, Database, Gateway, Setup, Upstream, ask, post, until};

const CLIENTS: usize = 8;

/// What was answered under a key: its status, and whether it was a replay; `None` if nothing was.
struct Heard {
    key: String,
    answer: Option<(u16, bool)>,
}

/// Clients that come back for more until they are told to stop; what each of them was answered.
fn load(balancer: &LoadBalancer, done: &Arc<AtomicBool>) -> JoinSet<Vec<Heard>> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (to, done) = (balancer.address(), Arc::clone(done));
        clients.spawn(async move {
            let mut heard = Vec::new();
            for number in 0.. {
                let key = format!("{client}-{number}");
                for _ in 0..2 {
                    let answer = ask(to, post("/pay", &key, "ten")).await;
                    let answer = answer.map(|answer| (answer.status, answer.is_replay()));
                    heard.push(Heard { key: key.clone(), answer });
                }
                if done.load(Relaxed) {
                    break;
                }
            }
            heard
        });
    }
    clients
}

async fn up(balancer: &LoadBalancer, number: usize, expected: bool) {
    until("HAProxy to notice", async || balancer.is_up(number).unwrap() == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_and_every_key_runs_once_while_gateways_are_replaced() {
    let upstream = Upstream::start(Behaviour {
        takes: std::time::Duration::from_millis(20),
        ..Behaviour::default()
    })
    .await;
    let database = Database::create().await;
    let mut gateways: Vec<Gateway> = Vec::new();
    for _ in 0..2 {
        let setup = Setup::new(upstream.address).store(&database.url);
        gateways.push(setup.config("drain_delay = \"1s\"\n").start().await);
    }
    let servers: Vec<_> = gateways
        .iter()
        .map(|gateway| BalancedServer { address: gateway.address, health: gateway.admin })
        .collect();
    let balancer = spawn_blocking(move || LoadBalancer::start(&servers)).await.unwrap().unwrap();
    for number in 0..gateways.len() {
        up(&balancer, number, true).await;
    }
    let done = Arc::<AtomicBool>::default();
    let clients = load(&balancer, &done);
    for (number, gateway) in gateways.iter_mut().enumerate() {
        let before = upstream.total();
        until("some load", async || upstream.total() > before + 20).await;
        gateway.signal("TERM");
        up(&balancer, number, false).await;
        assert!(gateway.ended().await, "{}", gateway.log());
        gateway.run().await;
        up(&balancer, number, true).await;
    }
    let before = upstream.total();
    until("some load", async || upstream.total() > before + 20).await;
    done.store(true, Relaxed);
    let heard: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    for (number, Heard { key, answer }) in heard.iter().enumerate() {
        assert_eq!(*answer, Some((201, number % 2 == 1)), "{key}");
    }
    assert_eq!(upstream.twice(), Vec::<String>::new());
    assert_eq!(upstream.total(), heard.len() / 2);
    assert!(heard.len() > 100, "{}", heard.len());
}
