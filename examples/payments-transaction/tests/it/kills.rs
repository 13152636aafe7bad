//! The service itself, killed in mid-load again and again.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
};

use crate::{
    clients::{Clients, Told},
    postgres::Postgres,
};

const KILLS: usize = 60;
const SEED: u64 = 0x68_61_70_61_78;
const CLIENTS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_kills_in_mid_load_leave_every_payment_once_with_its_event_and_its_answer() {
    let postgres = Postgres::new().await;
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut victim, url) = start(&postgres).await;
    let (tell, address) = watch::channel(url);
    let clients = Clients::start(CLIENTS, &address);
    for _ in 0..KILLS {
        clients.until_paid(clients.paid() + random.usize(1..12)).await;
        // The moment of the kill within a transaction of some milliseconds.
        tokio::time::sleep(Duration::from_micros(random.u64(0..8_000))).await;
        victim.kill().await.unwrap();
        let (next, url) = start(&postgres).await;
        victim = next;
        tell.send_replace(url);
    }
    let Told { orders, cut, unheard } = clients.check(&postgres.config()).await;
    victim.kill().await.unwrap();
    assert!(cut >= KILLS, "only {cut} requests were cut off: the kills missed the load");
    report(&format!(
        "{KILLS} kills (seed {SEED:#x}): {orders} orders paid once, {cut} requests cut off, {unheard} of them committed"
    ));
}

#[expect(clippy::print_stdout, reason = "the figure is quoted")]
fn report(line: &str) {
    println!("{line}");
}

/// Starts the service; its process and its address.
async fn start(postgres: &Postgres) -> (Child, String) {
    let mut service = Command::new(env!("CARGO_BIN_EXE_payments-transaction"))
        .env("DATABASE_URL", postgres.url())
        .env("LISTEN", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(service.stdout.take().unwrap()).lines();
    let line = said.next_line().await.unwrap().expect("the service must start");
    let url = line.strip_prefix("listening on ").expect("the service must say where it is");
    (service, url.to_owned())
}
