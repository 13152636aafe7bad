//! A short form of the tests of PostgreSQL, on every version of it that is supported.

use std::{path::Path, process::Command};

use hapax_services::{
    postgres::{Server, Settings},
    postgres_versions::Version,
};

use super::absent;
use crate::TaskFailure;

/// The packages whose tests they are, and which of those.
const PACKAGES: &[(&str, &[&str])] = &[("hapax-postgres", STORE), ("hapax-cli", PROGRAM)];

/// What may differ between versions: the schema and its catalogue, plans, the statements of the store, the
/// decisions of the SQL functions, what looks after a database, and transactions, events and messages of callers.
const STORE: &[&str] = &[
    "schema::",
    "plans::",
    "functions::catalogue::",
    "functions::decisions::",
    "functions::events::",
    "tending::",
    "conformance::claim::",
    "conformance::settle::",
    "conformance::retention::",
    "conformance::steps::",
    "conformance::incarnation::",
    "outbox_conformance::order::",
    "inbox_conformance::records::",
    "transactions::commits::deadpool::",
    // A stream needs a server of its own, and a driver is the same on every version.
    "--skip=tail::",
    "--skip=through_sqlx",
    // Extensions are of one version, and need a server of their own, too.
    "--skip=tending::cron::pg_cron",
    // What is encrypted is bytes to every one of them.
    "--skip=encrypted::",
];

/// What the program makes of a database of each version.
const PROGRAM: &[&str] = &["doctor::versions::"];

/// Which tests of this package are run on every version; `None` if none are.
fn chosen(package: &Path) -> Option<(&'static str, &'static [&'static str])> {
    PACKAGES.iter().copied().find(|(name, _)| package.ends_with(name))
}

/// A server of each version. Dropping them stops them.
pub(super) struct Versions(Vec<(Version, Server)>);

impl Versions {
    /// Starts them, fetching them first if need be; none where that cannot be.
    pub(super) fn start() -> Result<Self, TaskFailure> {
        let start = |version| {
            // Tests make and drop many databases on it, and none of them cuts its power.
            let config = vec!["fsync=off".to_owned()];
            let settings = Settings { config, version: Some(version), ..Settings::default() };
            Server::start(settings).map(|server| (version, server))
        };
        match Version::ALL.into_iter().map(start).collect() {
            Ok(servers) => Ok(Self(servers)),
            Err(error) => {
                absent(&format!("PostgreSQL of every version: {error}"))?;
                Ok(Self(Vec::new()))
            }
        }
    }

    /// The test program of this package on each of them, and what that is called.
    pub(super) fn commands(&self, package: &Path, program: &Path) -> Vec<(String, Command)> {
        let Some((name, tests)) = chosen(package) else { return Vec::new() };
        let command = |(version, server): &(Version, Server)| {
            let mut command = Command::new(program);
            command.args(tests).env("HAPAX_POSTGRES_URL", server.url());
            (format!("{name} on PostgreSQL {}", version.major()), command)
        };
        self.0.iter().map(command).collect()
    }
}
