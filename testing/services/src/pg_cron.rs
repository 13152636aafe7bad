//! pg_cron: a PostgreSQL server that calls statements at set times, with Debian's `postgresql-VERSION-cron`.

use std::path::PathBuf;

use crate::{
    debian,
    error::ServiceError,
    postgres::{self, Server, Settings},
};

const EXTENSION: &str = "pg_cron";
const REMEDY: &str =
    "install it (Debian: `apt-get install -y postgresql-15-cron`, by your version of PostgreSQL)";

/// Starts a server whose database `postgres` can have the extension, installing pg_cron first if need be.
pub fn start() -> Result<Server, ServiceError> {
    let missing = || ServiceError::Missing { server: EXTENSION, remedy: REMEDY };
    // It belongs to a version of the server, and the server has to be there to tell.
    drop(Server::start(Settings::default())?);
    let version = postgres::debian_version().ok_or_else(missing)?;
    let control: PathBuf =
        ["/usr/share/postgresql", &version.to_string(), "extension/pg_cron.control"]
            .iter()
            .collect();
    if !control.is_file() {
        debian::install(EXTENSION, &format!("postgresql-{version}-cron"), REMEDY)?;
    }
    let config = ["shared_preload_libraries=pg_cron", "cron.host=127.0.0.1"];
    Server::start(Settings { config: config.map(str::to_owned).to_vec(), ..Settings::default() })
}
