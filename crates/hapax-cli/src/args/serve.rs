//! `hapax serve` and `hapax check-config`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::StoreFileArgs;

/// Put the gateway in front of an API: one effect per Idempotency-Key.
///
/// Without a file every request that changes something may carry an Idempotency-Key header; those
/// that do run once, and their retries are answered with the first answer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax serve --upstream http://127.0.0.1:3000
  hapax serve --upstream http://127.0.0.1:3000 --tenant header:X-API-Key
  hapax serve --upstream http://127.0.0.1:3000 --observe      watch first; `hapax report` says what it saw
  hapax serve --config gateway.toml
  hapax serve --upstream http://127.0.0.1:3000 --store postgres://hapax@db/hapax --listen 0.0.0.0:8080

Signals: SIGHUP reads the file again, SIGTERM and Ctrl-C let requests finish, then end.
Exit status: 0 when everything finished, 1 when it could not start or something was cut off.")]
pub(crate) struct ServeArgs {
    /// How routes are treated, as a TOML file.
    #[arg(long, env = "HAPAX_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where clients connect; 127.0.0.1:8080 unless the file says otherwise.
    #[arg(long, env = "HAPAX_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The API behind the gateway.
    #[arg(long, env = "HAPAX_UPSTREAM", value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where records are kept: sqlite:PATH (sqlite:hapax.db by default), postgres://… or memory:
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) file: StoreFileArgs,
    /// Who callers are, whose keys are kept apart: `credential` (their Authorization header; so unless
    /// the file says otherwise), `header:X-API-Key` or `cookie:session` for a secret elsewhere,
    /// `single` or a NAME for one that all of them are.
    #[arg(long, env = "HAPAX_TENANT", value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Where health, metrics and the admin API are; 127.0.0.1:8081 unless the file says otherwise,
    /// or `off`.
    #[arg(long, env = "HAPAX_ADMIN", value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// The token the admin API asks for. Better given by the environment or a file: every user of a
    /// machine can see what others type.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) admin_token: Option<String>,
    /// The file that holds it; counts for more than --admin-token.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Watch alone, whatever the file says: every request passes as it is, nothing is refused or stored, and
    /// what would have been done is counted.
    #[arg(long, conflicts_with = "enforce")]
    pub(crate) observe: bool,
    /// Enforce every route, also those that the file says to watch alone.
    #[arg(long)]
    pub(crate) enforce: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What is logged, and how.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// What is logged: a level, or a filter such as `hapax_engine=debug,warn`.
    #[arg(long, env = "HAPAX_LOG", value_name = "FILTER", default_value = "warn")]
    pub(crate) log: String,
    /// How it is written.
    #[arg(long, env = "HAPAX_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

/// Read a gateway's file, and say what would be in force.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hapax check-config gateway.toml

Exit status: 0 when the file is good, 1 when it is not; every fault is shown with its line.")]
pub(crate) struct CheckConfigArgs {
    /// The TOML file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
