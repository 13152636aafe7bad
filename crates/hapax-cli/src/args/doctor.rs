//! `hapax doctor`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, value_parser};

use super::{StoreFileArgs, duration};

/// Look at everything that makes the promise hold, and say what to do about what does not.
///
/// Each line says what was found; where something is not well, also what it risks and what to type.
/// Nothing is changed: a PostgreSQL session that looks is read-only, and beside an SQLite file a file of
/// the doctor's own is written and removed, to measure how long a sync takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax doctor --store postgres://hapax@db/hapax
  hapax doctor --store sqlite:hapax.db
  hapax doctor --config gateway.toml                          its store too
  hapax doctor --config gateway.toml --client-retries-for 72h
  hapax doctor --store postgres://hapax@db/hapax --after-restore --client-retries-for 72h
  hapax doctor --store postgres://hapax@db/hapax --json       for programs

Exit status: 0 when there is nothing above a note, 1 when there is a warning, 2 when there is a danger (or
the arguments mean nothing), 3 when nothing could be looked at.")]
pub(crate) struct DoctorArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database. Without it, the one of --config.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(required_unless_present_any = ["config", "store_file"])]
    pub(crate) store: Option<String>,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// The file of a gateway, which is looked at too.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How long clients go on trying: keys must be kept for longer, best two or three times as long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) client_retries_for: Option<Duration>,

    /// The store was restored from a backup: say what may be missing, whether that was noticed, and what to do.
    #[arg(long)]
    pub(crate) after_restore: bool,

    /// How many gateways share the store.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) gateways: u32,

    /// Leave out what is well.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl DoctorArgs {
    /// The store that was typed.
    pub(crate) fn typed_store(&self) -> Option<String> {
        self.file.address().or_else(|| self.store.clone())
    }
}
