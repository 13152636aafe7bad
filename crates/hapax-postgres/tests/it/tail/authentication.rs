//! How a server lets the stream in.

use std::fs;

use super::{Place, patient, run};

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
        let follow =
            hapax_postgres::tail::Tail::follow(place.outbox().await, &config, patient()).await;
        super::streaming(&follow.unwrap()).await;
    }
}
