//! Which server it is, and whether it can be used at all.

use std::time::Duration;

use hapax::postgres::OpenError;
use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};
use crate::{sentence, units::span};

const LOOK: &str = "
SELECT pg_catalog.current_setting('server_version_num')::int4,
       pg_catalog.current_setting('server_version'),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('transaction_read_only') = 'on',
       pg_catalog.current_setting('default_transaction_isolation')
";

struct ServerFacts {
    number: i32,
    version: String,
    is_standby: bool,
    is_read_only: bool,
    isolation: String,
}

const CHECKS: &[fn(&ServerFacts) -> Diagnosis] = &[version, writable, isolation];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("server", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<ServerFacts, Error> {
    let row = client.query_one(LOOK, &[]).await?;
    Ok(ServerFacts {
        number: row.try_get(0)?,
        version: row.try_get(1)?,
        is_standby: row.try_get(2)?,
        is_read_only: row.try_get(3)?,
        isolation: row.try_get(4)?,
    })
}

/// What it means how the store was let in.
pub(super) fn entry(entered: Result<(), &OpenError>) -> Diagnosis {
    const NAME: &str = "connection";
    let Err(error) = entered else {
        return Diagnosis::new(NAME, "two sessions are kept apart, advisory locks hold");
    };
    let found = Diagnosis::new(NAME, sentence(error));
    if let OpenError::Connect(_) | OpenError::NoDatabase(_) = error {
        return found.danger(
            "nothing can be served: requests with keys are refused with 503",
            "start the server, or correct the host, port, user, password and database of the address",
        );
    }
    if let OpenError::Pooled(_) = error {
        return found.danger(
            "statements of one session run in others, so that most requests fail",
            "connect to PostgreSQL itself, or set pool_mode = session in the pooler",
        );
    }
    if let OpenError::NoLocks(_) = error {
        return found.danger(
            "two requests with one key can both run",
            "use PostgreSQL itself, version 14 or newer",
        );
    }
    // Each of the others has a check of its own, which says more.
    Diagnosis::new(NAME, "the server answers")
}

/// What it means that nobody answered.
pub(super) fn silence(waited: Duration) -> Diagnosis {
    Diagnosis::new("connection", format!("no answer within {}", span(waited))).danger(
        "nothing can be served: requests with keys are refused with 503",
        "see what keeps packets from the server: a firewall, a wrong address, a server that hangs",
    )
}

fn version(facts: &ServerFacts) -> Diagnosis {
    const OLDEST: i32 = 14;
    let found = Diagnosis::new("version", format!("PostgreSQL {}", facts.version));
    if facts.number / 10_000 >= OLDEST {
        return found;
    }
    found.danger(
        "the schema cannot be created, or does not work",
        format!("upgrade to PostgreSQL {OLDEST} or newer"),
    )
}

fn writable(facts: &ServerFacts) -> Diagnosis {
    let found = |what: &str| Diagnosis::new("writable", what);
    let risk = "nothing can be claimed: requests with keys are refused with 503";
    if facts.is_standby {
        return found("this server is a standby").danger(risk, "connect to the primary");
    }
    if facts.is_read_only {
        return found("transactions are read-only here").danger(
            risk,
            "ALTER DATABASE … RESET default_transaction_read_only; or ALTER ROLE … RESET …",
        );
    }
    found("this server takes writes")
}

fn isolation(facts: &ServerFacts) -> Diagnosis {
    let found = Diagnosis::new("isolation", facts.isolation.as_str());
    if facts.isolation == "read committed" {
        return found;
    }
    found.note(
        "the store sets its own; services that record in their own transaction meet serialization failures (40001) and have to repeat them",
        "repeat transactions that end with 40001, or ALTER DATABASE … SET default_transaction_isolation = 'read committed'",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> ServerFacts {
        let (version, isolation) = ("15.4".to_owned(), "read committed".to_owned());
        ServerFacts { number: 150_004, version, is_standby: false, is_read_only: false, isolation }
    }

    #[test]
    fn a_server_that_is_too_old_or_takes_no_writes_is_a_danger() {
        assert!(CHECKS.iter().all(|check| check(&facts()).concern.is_none()));
        let old = ServerFacts { number: 130_012, ..facts() };
        assert_eq!(version(&old).severity(), Some(Severity::Danger));
        let standby = ServerFacts { is_standby: true, is_read_only: true, ..facts() };
        assert!(writable(&standby).found.contains("standby"));
        let closed = ServerFacts { is_read_only: true, ..facts() };
        assert_eq!(writable(&closed).severity(), Some(Severity::Danger));
    }
}
