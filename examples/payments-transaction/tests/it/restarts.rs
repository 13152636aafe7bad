//! A database server that crashes while clients pay.

use hapax_services::postgres::{Mode, Server, Settings};
use tokio::sync::watch;
use tokio_postgres::Config;

use crate::{
    clients::Clients,
    postgres::{pool, prepare},
    shop::serve,
};

const RESTARTS: usize = 4;
const CLIENTS: usize = 8;
/// Orders that are paid between two crashes.
const BETWEEN: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_in_mid_load_loses_no_payment_and_makes_none_twice() {
    let start = || Server::start(Settings::default()).unwrap();
    let mut server = tokio::task::spawn_blocking(start).await.unwrap();
    let config: Config = server.url().parse().unwrap();
    prepare(&config).await;
    let app = payments_transaction::app(pool(&config)).await.unwrap();
    let (_keep, address) = watch::channel(serve(app).await);
    let clients = Clients::start(CLIENTS, &address);
    for _ in 0..RESTARTS {
        clients.until_paid(clients.paid() + BETWEEN).await;
        server = tokio::task::spawn_blocking(move || {
            server.restart(Mode::Immediate).unwrap();
            server
        })
        .await
        .unwrap();
    }
    clients.until_paid(clients.paid() + BETWEEN).await;
    assert!(clients.check(&config).await.orders >= RESTARTS * BETWEEN);
}
