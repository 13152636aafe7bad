//! Servers of a version that was asked for.

use hapax_services::{
    postgres::{Server, Settings},
    postgres_versions::Version,
};
use tokio_postgres::NoTls;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_of_the_version_that_was_asked_for() {
    for version in [Version::V14, Version::V18] {
        let settings = Settings { version: Some(version), ..Settings::default() };
        let server = Server::start(settings).unwrap();
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let row = client.query_one("SHOW server_version_num", &[]).await.unwrap();
        let number: u32 = row.get::<_, String>(0).parse().unwrap();
        assert_eq!(number / 10_000, version.major());
    }
}
