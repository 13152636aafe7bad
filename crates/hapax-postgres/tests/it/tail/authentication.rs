//! How a server lets the stream in.

use std::fs;

use hapax_postgres::{Address, Outbox, OutboxOptions, tail::Tail};

use super::{Place, patient, run};
use crate::connect::SecuredServer;

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_is_let_in_by_every_usual_kind_of_password() {
    let place = Place::new().await;
    let client = place.client().await;
    let rules = place.server.data_dir().join("pg_hba.conf");
    for (method, kept) in
        [("scram-sha-256", "scram-sha-256"), ("md5", "md5"), ("password", "scram-sha-256")]
    {
        let role = format!("{}_{}", place.name, &method[..2]);
        run(&client, &format!("SET password_encryption = '{kept}'")).await;
        run(&client, &format!("CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'p\u{e4}ss''word'"))
            .await;
        let before = fs::read_to_string(&rules).unwrap();
        fs::write(&rules, format!("host all {role} 127.0.0.1/32 {method}\n{before}")).unwrap();
        run(&client, "SELECT pg_reload_conf()").await;
        let mut config = place.config();
        config.user(&role).password("wrong");
        // The server takes its time to read its rules again.
        while config.connect(tokio_postgres::NoTls).await.is_ok() {}
        config.password("p\u{e4}ss'word");
        let follow = Tail::follow(place.outbox().await, &config, patient()).await;
        super::streaming(&follow.unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_is_encrypted_and_its_password_proved_on_its_own_connection() {
    let secured = SecuredServer::start(
        "local all postgres trust\nhostssl all +with_password all scram-sha-256\n",
    );
    secured.role("follower", "with_password", "SUPERUSER PASSWORD 'p'").await;
    for parameters in
        ["sslmode=verify-full&channel_binding=require", "sslmode=require&channel_binding=disable"]
    {
        let address: Address = secured.address("follower:p", parameters).parse().unwrap();
        let outbox = Outbox::connect(&address, OutboxOptions::default()).await.unwrap();
        let tail = Tail::follow(outbox, &address, patient()).await.unwrap();
        super::streaming(&tail).await;
        let text = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                    WHERE usename = 'follower' AND backend_type IN ('walsender', 'client backend')";
        let row = secured.superuser().await.query_one(text, &[]).await.unwrap();
        assert!(row.get::<_, bool>(0), "{parameters}");
        let text = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'hapax tail'";
        let row = secured.superuser().await.query_one(text, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 1, "{parameters}");
    }
}
