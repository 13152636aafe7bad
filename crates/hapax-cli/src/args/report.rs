//! `hapax report`.

use std::path::PathBuf;

use clap::Args;

/// Say what a gateway that only watches would have done: what was sent twice, by whom, and what it was worth.
///
/// A running gateway is asked, whose routes are watched by `mode = "observe"` or `hapax serve --observe`. It
/// counts since it was started; nothing is changed by asking.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export HAPAX_ADMIN_TOKEN=$(openssl rand -hex 32)      for both of these:
  hapax serve --upstream http://127.0.0.1:3000 --observe      and, a day later:
  hapax report
  hapax report --html report.html       a page for whoever decides
  hapax report --json                   for programs

Exit status: 0 when there is a report, 1 when the gateway could not be asked, 2 when the arguments mean nothing.")]
pub(crate) struct ObservationReportArgs {
    /// The gateway's admin listener: http://HOST:PORT.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub(crate) admin: String,

    /// The token the admin listener asks for. Better given by the environment or a file: every user of
    /// a machine can see what others type.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// The file that holds it; counts for more than --token.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Write the report as a page, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}
