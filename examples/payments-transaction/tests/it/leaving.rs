//! A client that does not wait for its answer.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    routing::post,
};
use hapax::{
    postgres::transaction::deadpool::Database,
    tower::{Protection, Tx, TxError},
};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Semaphore};

use crate::{
    postgres::{ONE, Postgres},
    shop::{Shop, protected, serve, write},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_does_not_stop_its_payment() {
    let semaphore = || Arc::new(Semaphore::new(0));
    let (begun, open, left) = (semaphore(), semaphore(), semaphore());
    let gate = (Arc::clone(&begun), Arc::clone(&open));
    let handler = async move |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        gate.0.add_permits(1);
        gate.1.acquire().await?.forget();
        Ok(StatusCode::CREATED)
    };
    let postgres = Postgres::new().await;
    let database = Database::new(postgres.pool());
    let leaving = Arc::clone(&left);
    let app = protected(database, Protection::default(), post(handler)).await.layer(from_fn(
        move |request: Request, next: Next| {
            let told = Told(Arc::clone(&leaving));
            async move {
                let response = next.run(request).await;
                drop(told);
                response
            }
        },
    ));
    let url = serve(app).await;

    let mut client = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    let request = "POST /payments HTTP/1.1\r\nhost: shop\r\nauthorization: Bearer shop-1\r\n\
                   content-type: application/json\r\nidempotency-key: \"k\"\r\n\
                   content-length: 0\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    begun.acquire().await.unwrap().forget();
    drop(client);
    left.acquire().await.unwrap().forget();
    open.add_permits(1);

    let shop = Shop::at(postgres, &url);
    let retry = shop.pay("k", "").await;
    assert_eq!((retry.status, retry.is_replay()), (201, true));
    assert_eq!(shop.postgres.found().await, ONE);
}

/// Tells when the server is no longer concerned with a request.
struct Told(Arc<Semaphore>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}
