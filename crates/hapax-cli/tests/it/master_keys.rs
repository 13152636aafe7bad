//! Where the master key is: replaced in several gateways of one store, and kept by a key service.

use std::{
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use hapax_services::{broker::Mode, kms};

use crate::{
    encryption::{ENCRYPTED, SECRET, file_beside, setup, times_in_files},
    text,
    world::{Answer, Behaviour, Database, Gateway, Setup, Upstream, ask, post, until},
};

const OLD_THEN_NEW: &str =
    "[encryption]\nmaster_key_file = \"master.key\"\nprevious_key_file = \"new.key\"\n";
const NEW_THEN_OLD: &str =
    "[encryption]\nmaster_key_file = \"new.key\"\nprevious_key_file = \"master.key\"\n";
const NEW_ALONE: &str = "[encryption]\nmaster_key_file = \"new.key\"\n";

/// What somebody asks who was never seen before.
fn first_request(key: &str) -> String {
    post("/payments", key, SECRET).replace("alice\r\n", &format!("caller-{key}\r\n"))
}

/// What clients were told, one request of a new caller after another, each sent to every gateway.
#[derive(Default)]
struct Heard {
    done: AtomicBool,
    keys: Mutex<Vec<(String, Answer)>>,
    refused: Mutex<Vec<String>>,
}

impl Heard {
    async fn clients(self: Arc<Self>, gateways: [SocketAddr; 2]) {
        for number in (0..).take_while(|_| !self.done.load(Relaxed)) {
            let key = format!("k{number}");
            let mut receipt = None;
            // Whichever is asked first makes the caller's data key, and the other has to read it.
            for turn in 0..2 {
                let to = gateways[(number + turn) % 2];
                match ask(to, first_request(&key)).await {
                    Some(answer) if answer.status == 201 => receipt = Some(answer),
                    // It is being restarted.
                    None => {}
                    Some(answer) if answer.code().as_deref() == Some("shutting-down") => {}
                    Some(answer) => self.refused.lock().unwrap().push(answer.text().to_owned()),
                }
            }
            if let Some(receipt) = receipt {
                self.keys.lock().unwrap().push((key, receipt));
            }
        }
    }

    async fn go_on(&self) {
        let before = self.keys.lock().unwrap().len();
        until("some load", async || self.keys.lock().unwrap().len() > before + 10).await;
    }
}

async fn restart(gateway: &mut Gateway, config: &str) {
    gateway.signal("TERM");
    assert!(gateway.ended().await, "{}", gateway.log());
    gateway.configure(config);
    gateway.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_key_is_replaced_in_one_gateway_after_the_other_and_no_client_is_refused() {
    let (database, upstream) =
        (Database::create().await, Upstream::start(Behaviour::default()).await);
    let start = || setup(&upstream, ENCRYPTED).store(&database.url).start();
    let mut gateways = [start().await, start().await];
    let addresses = [gateways[0].address, gateways[1].address];
    let heard = Arc::<Heard>::default();
    let clients = tokio::spawn(Arc::clone(&heard).clients(addresses));
    heard.go_on().await;
    for config in [OLD_THEN_NEW, NEW_THEN_OLD, NEW_ALONE] {
        if config == NEW_ALONE {
            let file = file_beside(&gateways[0], "gateway.toml");
            let mut rewrap = Command::new(env!("CARGO_BIN_EXE_hapax"));
            rewrap.args(["encryption", "rewrap", "--config", &file, "--store", &database.url]);
            let rewrapped = rewrap.output().unwrap();
            assert!(rewrapped.status.success(), "{}", text(&rewrapped.stderr));
        }
        for gateway in &mut gateways {
            restart(gateway, config).await;
            heard.go_on().await;
        }
    }
    heard.done.store(true, Relaxed);
    clients.await.unwrap();
    assert_eq!(*heard.refused.lock().unwrap(), Vec::<String>::new());
    let keys = std::mem::take(&mut *heard.keys.lock().unwrap());
    for (key, receipt) in keys {
        for to in addresses {
            let replay = ask(to, first_request(&key)).await.unwrap();
            assert_eq!((replay.is_replay(), &replay.body), (true, &receipt.body), "{key}");
        }
        assert_eq!(upstream.effects(&key), 1, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_lacks_the_new_master_key_refuses_new_callers_and_runs_nothing() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let old = setup(&upstream, ENCRYPTED).start().await;
    let new = setup(&upstream, NEW_THEN_OLD).store(&old.store).start().await;
    assert_eq!(ask(new.address, first_request("k")).await.unwrap().status, 201);
    let refused = ask(old.address, first_request("k")).await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (503, Some("store-unavailable")));
    assert_eq!(upstream.effects("k"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_keeps_its_master_key_in_a_key_service_and_runs_nothing_new_without_it() {
    let mut service = tokio::task::spawn_blocking(kms::start).await.unwrap().unwrap();
    let arn = kms::create_key(&service).unwrap();
    let upstream = Upstream::start(Behaviour::default()).await;
    let config =
        format!("[encryption]\nkms_key = \"{arn}\"\nkms_endpoint = \"{}\"\n", service.url());
    let mut gateway = Setup::new(upstream.address)
        .variable("AWS_ACCESS_KEY_ID", "somebody")
        .variable("AWS_SECRET_ACCESS_KEY", "secret")
        .config(&config)
        .start()
        .await;
    let request = post("/payments", "k1", SECRET);
    let first = ask(gateway.address, &request).await.unwrap();
    assert_eq!(first.status, 201, "{} {}", first.text(), gateway.log());
    gateway.kill();
    assert_eq!(times_in_files(&gateway, SECRET), 0);
    gateway.run().await;
    let replay = ask(gateway.address, &request).await.unwrap();
    assert_eq!((replay.is_replay(), &replay.body), (true, &first.body));
    tokio::task::block_in_place(|| service.stop(Mode::Kill)).unwrap();
    let refused = ask(gateway.address, first_request("stranger")).await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (503, Some("store-unavailable")));
    let known = ask(gateway.address, post("/payments", "k2", SECRET)).await.unwrap();
    assert_eq!(known.status, 201, "its key is in memory: {}", known.text());
    assert_eq!((upstream.effects("stranger"), upstream.total()), (0, 2));
}
