//! Servers that cannot be followed.

use hapax_postgres::tail::{self, Tail, TailError, TailOptions};
use tokio_postgres::Config;

use super::{Place, run, streaming};
use crate::backend::Postgres;

async fn refused(place: &Place, config: &Config, options: TailOptions) -> TailError {
    Tail::follow(place.outbox().await, config, options).await.unwrap_err()
}

fn without_preparing() -> TailOptions {
    TailOptions { prepare: false, ..TailOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_writes_too_little_is_refused_with_what_to_set() {
    let postgres = Postgres::empty().await;
    let options = hapax_postgres::OutboxOptions::default();
    let outbox = hapax_postgres::Outbox::connect(&postgres.config(), options).await.unwrap();
    let refused = Tail::follow(outbox, &postgres.config(), TailOptions::default()).await;
    let refusal = refused.unwrap_err();
    assert!(matches!(&refusal, TailError::WalLevel { found } if found == "replica"), "{refusal}");
    assert!(refusal.to_string().contains("wal_level = logical"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_publication_nothing_is_followed_until_it_is_made() {
    let place = Place::new().await;
    let config = place.config();
    let refusal = refused(&place, &config, without_preparing()).await;
    assert!(matches!(refusal, TailError::NoPublication), "{refusal}");
    for _ in 0..2 {
        tail::prepare(&config).await.unwrap();
    }
    place.tail(without_preparing()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_leaves_something_out_is_refused() {
    let place = Place::new().await;
    place.outbox().await;
    let (client, config) = (place.client().await, place.config());
    for wrong in [
        "FOR TABLE hapax.outbox WITH (publish = 'insert')",
        "FOR TABLE hapax.outbox WITH (publish = 'update', publish_via_partition_root = true)",
        "FOR TABLE hapax.notes WITH (publish_via_partition_root = true)",
        "FOR TABLE hapax.outbox WHERE (topic = 't') WITH (publish = 'insert', publish_via_partition_root = true)",
    ] {
        run(&client, &format!("CREATE PUBLICATION hapax_outbox {wrong}")).await;
        let refusal = refused(&place, &config, TailOptions::default()).await;
        assert!(matches!(refusal, TailError::PublicationDiffers), "{wrong}: {refusal}");
        run(&client, "DROP PUBLICATION hapax_outbox").await;
    }
    run(
        &client,
        "CREATE PUBLICATION hapax_outbox FOR ALL TABLES WITH (publish_via_partition_root = true)",
    )
    .await;
    streaming(&place.tail(TailOptions::default()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_replicate_is_refused_with_what_to_grant() {
    let place = Place::new().await;
    place.outbox().await;
    tail::prepare(&place.config()).await.unwrap();
    let role = format!("{}_reader", place.name);
    let client = place.client().await;
    run(&client, &format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA hapax TO {role}")).await;
    run(&client, &format!("GRANT SELECT ON ALL TABLES IN SCHEMA hapax TO {role}")).await;
    run(&client, &format!("GRANT SELECT ON SEQUENCE hapax.outbox_positions TO {role}")).await;
    let mut config = place.config();
    config.user(&role);
    let refusal = refused(&place, &config, without_preparing()).await;
    assert!(matches!(&refusal, TailError::NotAllowed { role: told } if *told == role));
    run(&client, &format!("ALTER ROLE {role} REPLICATION")).await;
    let follow = Tail::follow(place.outbox().await, &config, without_preparing());
    streaming(&follow.await.unwrap()).await;
}
