//! The PostgreSQL server that the gateway keeps its records on.

use std::sync::Arc;

use crate::bench::{BenchError, server::Server};

/// The database of one measurement.
const NAME: &str = "hapax_bench_http";

pub(super) struct Database {
    server: Arc<Server>,
    /// Where the gateway finds [`NAME`].
    url: String,
}

impl Database {
    /// On this server, whose address was typed, or which is our own.
    pub(super) fn new(server: Arc<Server>, typed: Option<&str>) -> Self {
        let own = server.url();
        let url = with_database(own.as_deref().or(typed).unwrap_or_default(), NAME);
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
