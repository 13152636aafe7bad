//! A service's own pool, made from the same address.

use deadpool_postgres::{Manager, Pool};
use hapax_core::OneLine;
use hapax_postgres::Address;

use super::SecuredServer;

const ENCRYPTED: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[tokio::test]
async fn a_pool_is_as_encrypted_as_its_address_says() {
    let secured = SecuredServer::shared();
    secured.role("pooled", "with_password", "PASSWORD 'p'").await;
    let passfile = secured.write("pooled.pgpass", "*:*:*:pooled:p\n");
    let parameters = format!("sslmode=verify-full&passfile={}", passfile.display());
    let address: Address = secured.address("pooled", &parameters).parse().unwrap();
    let by_hand =
        Manager::new(address.driver_config().await.unwrap(), address.connector().unwrap());
    for manager in [address.manager(), by_hand] {
        let pool = Pool::builder(manager).max_size(1).build().unwrap();
        let client = pool.get().await.unwrap();
        assert!(client.query_one(ENCRYPTED, &[]).await.unwrap().get::<_, bool>(0));
    }
}

#[tokio::test]
async fn a_pool_says_what_the_address_would_say() {
    let secured = SecuredServer::shared();
    secured.role("unpooled", "with_password", "PASSWORD 'p'").await;
    let address: Address = secured.address("unpooled:wrong", "sslmode=require").parse().unwrap();
    let pool = Pool::builder(address.manager()).max_size(1).build().unwrap();
    let refused = pool.get().await.unwrap_err();
    let told = OneLine::of(&refused).to_string();
    assert!(told.contains("does not take the password of its address"), "{told}");
}
