//! `hapax migrate`.

use clap::Args;

use super::StoreFileArgs;

/// Create the schema that a store needs, or bring it up to date.
///
/// Run it before what uses the store. It may be run at any time, again, and on many machines at
/// once: each step is one transaction, and what is there already is left alone. `hapax serve` does
/// the same when it starts; this is for services that call the SQL functions alone, and for roles
/// that may not create tables.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax migrate --store postgres://owner@db/shop
  hapax migrate --store postgres://owner@db/shop --role shop_service   who may call the functions
  hapax migrate --store postgres://owner@db/shop --print > hapax.sql   for somebody else to run
  hapax migrate --print > hapax.sql                                    all of it, for a new database
  hapax migrate --store sqlite:shop.db --dry-run

Exit status: 0 when the schema is what this program needs, or would be; 1 when it failed and nothing
was changed by the step that failed.")]
pub(crate) struct MigrateArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(required_unless_present_any = ["print", "store_file"])]
    pub(crate) store: Option<String>,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// Let this role call the SQL functions, and read no table of the schema. PostgreSQL alone.
    #[arg(long, value_name = "NAME")]
    pub(crate) role: Option<String>,

    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the SQL that would be run, and do nothing. Without a store it is all that a new
    /// PostgreSQL database needs, and nobody is asked.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) print: bool,
}
