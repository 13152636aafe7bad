//! A PostgreSQL database of its own for a test.

use std::{
    env, fs,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use tokio_postgres::NoTls;

/// A database on the server of `cargo xtask services up`; dropped with that server.
pub(crate) struct Database {
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create() -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Relaxed);
        let name = format!("hapax_cli_{}_{number}", process::id());
        let server = postgres_url();
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (before, _) = server.rsplit_once('/').unwrap();
        Self { url: format!("{before}/{name}") }
    }

    /// One with the schema.
    pub(crate) async fn migrated() -> Self {
        let database = Self::create().await;
        let output = crate::hapax(&["migrate", "--store", &database.url]);
        assert!(output.status.success(), "{}", crate::text(&output.stderr));
        database
    }
}

/// Where the server of `cargo xtask services up` is.
fn postgres_url() -> String {
    if let Ok(url) = env::var("HAPAX_POSTGRES_URL") {
        return url;
    }
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = fs::read_to_string(written);
    assert!(url.is_ok(), "start PostgreSQL with `cargo xtask services up` first: {url:?}");
    url.unwrap().trim().to_owned()
}
