//! The PostgreSQL server that the gateway keeps its records on.

use std::sync::Arc;

use crate::{
    BenchError,
    arms::postgres_baseline::connect,
    server::{BenchServer, database_name},
};

/// The database of one measurement.
const NAME: &str = "hapax_bench_http";

pub(super) struct Database {
    server: Arc<BenchServer>,
    /// Where the gateway finds [`NAME`].
    url: String,
}

impl Database {
    /// On this server, whose address was typed, or which is our own.
    pub(super) fn new(server: Arc<BenchServer>, typed: Option<&str>) -> Self {
        let own = server.url();
        let url = with_database(own.as_deref().or(typed).unwrap_or_default(), &database_name(NAME));
        Self { server, url }
    }

    /// Makes the database anew, and says where it is.
    pub(super) async fn fresh(&self) -> Result<String, BenchError> {
        self.server.create(NAME).await?;
        Ok(self.url.clone())
    }

    pub(super) async fn remove(&self) -> Result<(), BenchError> {
        self.server.remove(NAME).await
    }

    /// Bytes on disk for the tables of the gateway, with their indexes.
    pub(super) async fn bytes(&self) -> Result<u64, BenchError> {
        let ask = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint \
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
            WHERE n.nspname = 'hapax' AND c.relkind = 'r'";
        let client = connect(&self.server.database(NAME)).await?;
        let bytes: i64 = client.query_one(ask, &[]).await?.try_get(0)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// How many bytes of log the server ever wrote.
    pub(super) async fn log_bytes(&self) -> Result<u64, BenchError> {
        self.server.log_bytes().await
    }

    /// The first process of a server we started; nothing is known of others.
    pub(super) fn pid(&self) -> Option<u32> {
        self.server.pid()
    }
}

/// The URL of another database on the same server.
fn with_database(url: &str, name: &str) -> String {
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find('/').map_or(address.len(), |at| start + at);
    let separator = if parameters.is_empty() { "" } else { "?" };
    format!("{}/{name}{separator}{parameters}", &address[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_a_url_changes() {
        for (url, expected) in [
            ("postgres://u:p@h:1/old", "postgres://u:p@h:1/new"),
            ("postgres://u@h:1", "postgres://u@h:1/new"),
            ("postgres://h/old?sslmode=disable", "postgres://h/new?sslmode=disable"),
        ] {
            assert_eq!(with_database(url, "new"), expected);
        }
    }
}
