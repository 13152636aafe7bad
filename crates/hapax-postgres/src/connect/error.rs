//! Why an address cannot be used, and why nobody let us in.

use std::{fmt, io, path::PathBuf};

use super::password::PasswordOrigin;

/// Why a text is no address of PostgreSQL, as what to write instead. Never repeats a value: it may be a
/// password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is neither a URL nor a list of parameters.
    #[error(
        "it is no PostgreSQL address; write postgres://user@host:port/database?name=value, each part \
         percent-encoded, or host=... dbname=... user=..."
    )]
    Form,
    /// It has a parameter of a name that PostgreSQL's own clients do not know.
    #[error("`{name}` is no parameter of a connection to PostgreSQL; remove it")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// It has a parameter that is not heeded here.
    #[error("the parameter `{name}` is not supported here with this value; remove it")]
    Unsupported {
        /// Its name.
        name: &'static str,
    },
    /// A parameter has a value that means nothing.
    #[error("`{name}` cannot be that; write {instead}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it can be.
        instead: &'static str,
    },
    /// Two parameters contradict each other.
    #[error("{what}; {instead}")]
    Contradiction {
        /// Which, and why.
        what: &'static str,
        /// What to write.
        instead: &'static str,
    },
    /// A password would go over the network where others can read it.
    #[error(
        "sslmode=disable sends the password of this address to {host} unencrypted; write sslmode=verify-full \
         (or require), or add hapax_plaintext_password=allow if nobody can listen"
    )]
    PlaintextPassword {
        /// Where it would go.
        host: String,
    },
    /// There is no service of this name.
    #[error(
        "there is no service `{name}` in PGSERVICEFILE, ~/.pg_service.conf or the machine's own"
    )]
    NoService {
        /// Its name.
        name: String,
    },
    /// A line of a service file is not `name=value`.
    #[error("line {line} of {} is not name=value", path.display())]
    ServiceLine {
        /// The file.
        path: PathBuf,
        /// Counted from one.
        line: usize,
    },
    /// A file that the address needs cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of an address names another database than it did.
    #[error("{} names another database than at the start; restart to use it", path.display())]
    OtherDatabase {
        /// The file.
        path: PathBuf,
    },
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The address, or what it points to, cannot be used.
    #[error("the address cannot be used")]
    Address(#[from] AddressError),
    /// Nobody answers there.
    #[error("nobody answers at {host}: check that PostgreSQL runs there")]
    Unreachable {
        /// Where.
        host: String,
        /// What the operating system says.
        source: tokio_postgres::Error,
    },
    /// The server, or something before it, took too long.
    #[error(
        "{host} took longer than {seconds} s to let us in; a longer time is connect_timeout=SECONDS"
    )]
    TooSlow {
        /// Where.
        host: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The server speaks no TLS, and the address asks for it.
    #[error("{host} speaks no TLS, and sslmode asks for it: have the server set `ssl = on`")]
    NoTls {
        /// Where.
        host: String,
    },
    /// The server speaks no TLS, and a password would go to it unencrypted.
    #[error(
        "{host} speaks no TLS, and the password would be sent to it unencrypted: have the server set \
         `ssl = on`, or write sslmode=disable and hapax_plaintext_password=allow if nobody can listen"
    )]
    PlaintextPassword {
        /// Where.
        host: String,
    },
    /// The server's certificate is not one that the address trusts.
    #[error("the certificate of {host} is not trusted: {advice}")]
    Certificate {
        /// Where.
        host: String,
        /// What can be done.
        advice: &'static str,
        /// What is wrong with it.
        source: tokio_postgres::Error,
    },
    /// Certificates or keys of our own cannot be used, or no encrypted connection came about.
    #[error("no encrypted connection to {host} came about")]
    Tls {
        /// Where.
        host: String,
        /// Why.
        source: tokio_postgres::Error,
    },
    /// The server wants a password, and there is none.
    #[error("{host} wants a password, and there is none: {advice}")]
    NoPassword {
        /// Where.
        host: String,
        /// Where one can be put.
        advice: PasswordAdvice,
    },
    /// The server does not take the password.
    #[error("{host} does not take the password {origin}")]
    WrongPassword {
        /// Where.
        host: String,
        /// Where it came from.
        origin: PasswordOrigin,
        /// What the server says.
        source: tokio_postgres::Error,
    },
    /// The command that prints the password did not.
    #[error("hapax_password_command {0}; run it by hand to see why")]
    PasswordCommand(&'static str),
    /// There is no such database.
    #[error("{host} has no such database")]
    NoDatabase {
        /// Where.
        host: String,
        /// What the server says.
        source: tokio_postgres::Error,
    },
    /// It takes no writes.
    #[error("{host} takes no writes, a standby perhaps")]
    ReadOnly {
        /// Where.
        host: String,
    },
    /// The server turned us away, or did not understand.
    #[error("{host} turned us away")]
    Refused {
        /// Where.
        host: String,
        /// What it said.
        source: tokio_postgres::Error,
    },
    /// None of several hosts will do.
    #[error("none of the hosts will do: {}", OneAfterTheOther(failures))]
    Several {
        /// What each of them said.
        failures: Vec<Self>,
    },
}

impl ConnectFailure {
    /// What became of all hosts together.
    pub(crate) fn of(mut failures: Vec<Self>) -> Self {
        let takes_no_writes = |failure: &Self| matches!(failure, Self::ReadOnly { .. });
        match failures.pop() {
            None => AddressError::Form.into(),
            Some(only) if failures.is_empty() => only,
            Some(last) if takes_no_writes(&last) && failures.iter().all(takes_no_writes) => last,
            Some(last) => {
                failures.push(last);
                Self::Several { failures }
            }
        }
    }
}

/// Where a password can be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordAdvice {
    /// A file that was passed over, because others may read it.
    pub(super) passed_over: Option<PathBuf>,
}

impl fmt::Display for PasswordAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.passed_over {
            None => f.write_str("write it to ~/.pgpass, or set PGPASSWORD"),
            Some(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} was passed over because others may read it; run `chmod 600 {path}`"
                )
            }
        }
    }
}

/// Failures with their causes, on one line.
struct OneAfterTheOther<'a>(&'a [ConnectFailure]);

impl fmt::Display for OneAfterTheOther<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, failure) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { "; " };
            write!(f, "{between}{}", hapax_core::OneLine::of(failure))?;
        }
        Ok(())
    }
}
