//! What people type after `hapax keys`.

use std::{env, path::PathBuf, time::Duration};

use clap::{Subcommand, ValueEnum, value_parser};
use hapax::{Fence, Key, OperationId, Scope, StateTag, Tenant};

use super::{StoreFileArgs, duration, encryption::MasterKeyArgs};

/// Look at keys, understand them, and decide what only a person can.
///
/// Exit codes: 0 done; 1 failed, nothing was changed; 2 the arguments mean nothing; 3 nothing was
/// found; 4 refused, nothing was changed; 5 nobody knows whether it was changed: show it.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hapax keys list --state in_doubt
  hapax keys list --state running --older-than 5m --order age
  hapax keys count --by scope
  hapax keys explain --tenant jwt:acme --scope 'POST /payments' --key 9f1c2d
  hapax keys resolve 1a0fb49b3048c68ad311324a449becfe \\
      --as completed --status 201 --body @receipt.json --why 'the bank has it'
  hapax keys release --key 9f1c2d --why 'the bank never saw it' --dry-run
  hapax keys purge --store postgres://owner@db/shop")]
pub(crate) enum KeysTask {
    /// List keys, in order of their id or of how long they are in their state.
    List(ListArgs),
    /// Count keys by their states, and by tenant or scope.
    Count(CountArgs),
    /// Show everything that is known about a key: its record, its past, and who changed it.
    Show(ShowArgs),
    /// Say how the next request with a key will be answered, why, and what to do about it.
    Explain(ExplainArgs),
    /// Give a key back, so that the next request with it runs.
    Release(ReleaseArgs),
    /// Write down what became of a key that nobody else knows about.
    Resolve(ResolveArgs),
    /// Remove what is past retention, and end.
    ///
    /// A running gateway or layer does so by itself. This is for services that call the SQL functions
    /// alone: run it every five minutes, from cron or the like. The first runs remove nothing: a clock is
    /// trusted once it was seen to go steadily for ten minutes.
    Purge(PurgeArgs),
}

/// Where the keys are.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database. Without it, what HAPAX_STORE
    /// says, or sqlite:hapax.db.
    #[arg(long, value_name = "URL", conflicts_with = "admin")]
    #[arg(default_value_t = usual_store(), hide_default_value = true)]
    pub(crate) store: String,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// Ask a running gateway's admin listener, whatever the store: http://HOST:PORT.
    #[arg(long, value_name = "URL")]
    pub(crate) admin: Option<String>,

    /// The token the admin listener asks for. Better given by the environment or a file: every user of
    /// a machine can see what others type.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// The file that holds it; counts for more than --token.
    #[arg(long, env = "HAPAX_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) master: MasterKeyArgs,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which key is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// The operation's id, as listings show it or as a client was told it.
    #[arg(value_name = "ID", value_parser = operation_id, conflicts_with_all = ["tenant", "scope", "key"])]
    #[arg(required_unless_present = "key")]
    pub(crate) id: Option<OperationId>,

    #[command(flatten)]
    pub(crate) parts: PartArgs,
}

/// The parts of an operation's name.
#[derive(Debug, clap::Args)]
pub(crate) struct PartArgs {
    /// Only keys of this tenant.
    #[arg(long, value_parser = |raw: &str| Tenant::parse(raw))]
    pub(crate) tenant: Option<Tenant>,

    /// Only keys of this scope, such as 'POST /payments'.
    #[arg(long, value_parser = |raw: &str| Scope::parse(raw))]
    pub(crate) scope: Option<Scope>,

    /// The client's key. Without tenant and scope every record is looked at.
    #[arg(long, value_parser = |raw: &str| Key::parse(raw))]
    pub(crate) key: Option<Key>,

    /// Most records a search for a key looks at.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub(crate) search_max: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) parts: PartArgs,

    #[command(flatten)]
    pub(crate) which: StateArgs,

    /// In which order. By age every record is looked at, at most --search-max of them.
    #[arg(long, value_name = "ORDER", default_value = "id")]
    pub(crate) order: ListOrder,

    /// Only ids after this one: where the last page ended. By age there is one page.
    #[arg(long, value_name = "ID", value_parser = operation_id)]
    pub(crate) after: Option<OperationId>,

    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) limit: u64,
}

/// Keys by their state.
#[derive(Debug, clap::Args)]
pub(crate) struct StateArgs {
    /// Only keys in this state.
    #[arg(long, value_parser = state)]
    pub(crate) state: Option<StateTag>,

    /// Only keys that entered their state longer ago than this: 90s, 5m, 1h, 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) older_than: Option<Duration>,
}

/// In which order keys are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOrder {
    /// By id, which is no order in time.
    Id,
    /// Those first that are in their state the longest.
    Age,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Only keys of this tenant.
    #[arg(long, value_parser = |raw: &str| Tenant::parse(raw))]
    pub(crate) tenant: Option<Tenant>,

    /// Only keys of this scope, such as 'POST /payments'.
    #[arg(long, value_parser = |raw: &str| Scope::parse(raw))]
    pub(crate) scope: Option<Scope>,

    #[command(flatten)]
    pub(crate) which: StateArgs,

    /// Count apart for each of these; the largest are shown.
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<CountBy>,

    /// Most tenants or scopes that are shown.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) limit: u64,

    /// Most records that are looked at.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub(crate) search_max: u64,
}

/// What keys are counted apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CountBy {
    Tenant,
    Scope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Stop after this many records; all that are due unless told otherwise.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) name: NameArgs,

    /// Show the stored body too.
    #[arg(long)]
    pub(crate) body: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) name: NameArgs,
}

/// What every change by a person needs.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) name: NameArgs,

    /// Why it is done. It is kept with the key for more than a year.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,

    /// Who does it; the name of the user who runs this unless said otherwise.
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,

    /// The attempt you saw; refused if there is another one by now. Without it, the one that is there.
    #[arg(long, value_name = "N", value_parser = fence)]
    pub(crate) fence: Option<Fence>,

    /// Do it even if an owner is at work. Its result then counts no more, but its effect may still
    /// happen, beside that of the next request.
    #[arg(long)]
    pub(crate) even_if_running: bool,

    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,

    /// What became of it.
    #[arg(long = "as", value_name = "WHAT", value_enum)]
    pub(crate) resolution: ResolvedAs,

    /// The status clients are answered with.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(100..=999))]
    #[arg(required_if_eq_any = [("resolution", "completed"), ("resolution", "failed")])]
    pub(crate) status: Option<u16>,

    /// The body clients are answered with: text, @FILE, or @- for what comes on standard input.
    #[arg(long, value_name = "TEXT|@FILE", requires = "status")]
    pub(crate) body: Option<String>,

    /// A header clients are answered with; may be repeated.
    #[arg(long, value_name = "NAME: VALUE", requires = "status", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
}

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResolvedAs {
    /// It happened: clients get this answer.
    Completed,
    /// It failed for good: clients get this answer.
    Failed,
    /// It never happened: the next request runs.
    Released,
}

/// The store of somebody who names none. To clap a variable is as explicit as a flag, and would
/// conflict with `--admin`; a default does not.
pub(super) fn usual_store() -> String {
    let said = env::var_os("HAPAX_STORE").map(|said| said.to_string_lossy().into_owned());
    said.unwrap_or_else(|| "sqlite:hapax.db".to_owned())
}

/// The id as listings show it, hyphens or not, or as a client was told it: the address of its
/// operation, or the end of that.
pub(crate) fn operation_id(raw: &str) -> Result<OperationId, String> {
    let told = raw.rsplit('/').next().unwrap_or(raw);
    OperationId::from_operator(told).or_else(|_| told.replace('-', "").parse()).map_err(|_| {
        "give the 32 hexadecimal digits that listings show, or the address a client was told"
            .to_owned()
    })
}

fn state(raw: &str) -> Result<StateTag, String> {
    let wanted = raw.replace('-', "_");
    let known = StateTag::ALL.into_iter().find(|state| state.as_str() == wanted);
    known.ok_or_else(|| {
        let words = StateTag::ALL.map(StateTag::as_str).join(", ");
        format!("give one of {words}")
    })
}

fn limit(raw: &str) -> Result<usize, String> {
    let known = raw.parse().ok().filter(|limit| *limit > 0);
    known.ok_or_else(|| "give a number of records, from 1".to_owned())
}

fn fence(raw: &str) -> Result<Fence, String> {
    let known = raw.parse().ok().and_then(Fence::from_stored);
    known.ok_or_else(|| "give the number of an attempt, from 1".to_owned())
}

fn header(raw: &str) -> Result<(String, String), String> {
    let (name, value) = raw.split_once(':').ok_or("write NAME: VALUE")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_value = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_value) {
        return Err("write NAME: VALUE, in visible ASCII".to_owned());
    }
    Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
}
