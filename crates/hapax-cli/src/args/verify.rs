//! What people type after `hapax verify`.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::{ArgAction, Args, ValueEnum, value_parser};
use hapax_examine::VENDOR_PROFILES;
use serde::{Deserialize, Serialize};

use super::duration;

/// Examine whether an API is safe to retry: any HTTP API, from outside, with evidence.
///
/// It sends requests whose effects can be counted, each with a key of its own, and then what networks and
/// clients do to them: retries, duplicates at once, broken connections, changed bodies, other people's
/// credentials. What it found is graded, and shown with what went over the wire.
///
/// It has real effects on what it examines: examine a copy, not what people pay with. `{marker}` in path and
/// body is replaced by a word of its own for each operation, by which its effects are found again.
///
/// Before the first request it shows what it is going to do.
#[derive(Debug, Args)]
#[command(override_usage = "\
hapax verify [OPTIONS] [METHOD] URL
       hapax verify [OPTIONS] --config FILE [--route 'POST /payments']
       hapax verify --openapi FILE [--write FILE] [URL]
       hapax verify --resume FILE")]
#[command(after_help = "\
Examples:
  hapax verify POST http://127.0.0.1:8080/payments --json '{\"amount\":100,\"ref\":\"{marker}\"}' \\
      --count 'GET /payments?ref={marker} /items/length' --id /id
  hapax verify http://127.0.0.1:8080/charges --profile stripe --body 'amount=100&description={marker}' \\
      --content-type application/x-www-form-urlencoded --credential 'Authorization: Bearer env:TOKEN'
  hapax verify POST http://127.0.0.1:8080/payments --json @payment.json --count-store env:DATABASE_URL \\
      --count-sql 'SELECT count(*) FROM payments WHERE ref = $1' --html report.html
  hapax verify --openapi openapi.json --write api.toml http://127.0.0.1:8080
  hapax verify --config api.toml --route 'POST /payments' --only V01,V05 --yes
  hapax verify --resume verify-7.json

Exit status: 0 nothing was found; 1 something was, and it is shown; 2 the arguments mean nothing, or safety
forbids it, and nothing was asked; 3 it could not be graded or came to no conclusion; 130, 143 ended by Ctrl-C
or SIGTERM: go on with --resume.")]
pub(crate) struct VerifyArgs {
    /// What to ask: a method (POST unless told otherwise), and where in full.
    #[arg(value_name = "[METHOD] URL", num_args = 0..=2)]
    pub(crate) target: Vec<String>,

    #[command(flatten)]
    pub(crate) settings: VerifySettings,
    #[command(flatten)]
    pub(crate) source: VerifySourceArgs,
    #[command(flatten)]
    pub(crate) consent: VerifyConsentArgs,
}

/// Everything that a file may say, too, with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VerifySettings {
    #[arg(skip)]
    pub(crate) method: Option<String>,
    #[arg(skip)]
    pub(crate) url: Option<String>,

    /// Send this JSON: text, or @FILE.
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "body", help_heading = REQUEST)]
    pub(crate) json: Option<String>,
    /// Send this as it is: text, or @FILE.
    #[arg(long, value_name = "TEXT|@FILE", help_heading = REQUEST)]
    pub(crate) body: Option<String>,
    /// What --body is.
    #[arg(long, value_name = "TYPE", help_heading = REQUEST)]
    pub(crate) content_type: Option<String>,
    /// The body with another value, for a key that comes twice; made by itself from JSON.
    #[arg(long, value_name = "TEXT|@FILE", help_heading = REQUEST)]
    pub(crate) changed_body: Option<String>,
    /// A body that is refused for its content; made by itself from JSON.
    #[arg(long, value_name = "TEXT|@FILE", help_heading = REQUEST)]
    pub(crate) invalid_body: Option<String>,
    /// Send a header; may be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", help_heading = REQUEST)]
    pub(crate) header: Vec<String>,
    /// Where answers name their effect, as a JSON pointer: /id.
    #[arg(long, value_name = "POINTER", help_heading = REQUEST)]
    pub(crate) id: Option<String>,
    /// Another address of the same API, with the same effects; may be repeated.
    #[arg(long, value_name = "URL", help_heading = REQUEST)]
    pub(crate) also: Vec<String>,
    /// Another operation that takes the same request.
    #[arg(long, value_name = "PATH", help_heading = REQUEST)]
    pub(crate) other_path: Option<String>,
    /// An operation that takes the same request and has a large answer (a MiB or more).
    #[arg(long, value_name = "PATH", help_heading = REQUEST)]
    pub(crate) large_path: Option<String>,
    /// Trust the certificates of this file (PEM), too.
    #[arg(long, value_name = "FILE", help_heading = REQUEST)]
    pub(crate) ca: Option<PathBuf>,

    /// A header that says who asks; a word env:NAME in it is read from the environment. May be repeated.
    #[arg(long, value_name = "NAME: VALUE", help_heading = WHO)]
    pub(crate) credential: Vec<String>,
    /// The same of somebody else who may ask the same.
    #[arg(long, value_name = "NAME: VALUE", help_heading = WHO)]
    pub(crate) other_credential: Vec<String>,
    /// What was the first one's, and is revoked.
    #[arg(long, value_name = "NAME: VALUE", help_heading = WHO)]
    pub(crate) revoked_credential: Vec<String>,

    /// How a vendor sends keys, and what it says it does.
    #[arg(long, value_name = "NAME", value_parser = profiles(), help_heading = KEYS)]
    pub(crate) profile: Option<String>,
    /// The header that keys are sent in; Idempotency-Key unless told otherwise.
    #[arg(long, value_name = "NAME", help_heading = KEYS)]
    pub(crate) key_header: Option<String>,
    /// How they are written there; found out unless told.
    #[arg(long, value_enum, help_heading = KEYS)]
    pub(crate) key_syntax: Option<WrittenKey>,
    /// Send UUIDs.
    #[arg(long, help_heading = KEYS)]
    pub(crate) uuid_keys: bool,
    /// A header that names when a request was first sent, as Repeatability-First-Sent does.
    #[arg(long, value_name = "NAME", help_heading = KEYS)]
    pub(crate) first_sent_header: Option<String>,
    /// How long keys are kept. Probes wait for the end of it.
    #[arg(long, value_name = "TIME", help_heading = KEYS)]
    pub(crate) ttl: Option<TimeSpan>,
    /// Whether a refused request (4xx) keeps its key, as the API says.
    #[arg(long, value_name = "true|false", help_heading = KEYS)]
    pub(crate) refusals_kept: Option<bool>,
    /// Whether a 5xx is stored and replayed, as the API says.
    #[arg(long, value_name = "true|false", help_heading = KEYS)]
    pub(crate) errors_kept: Option<bool>,
    /// Whether requests without a key are refused, as the API says.
    #[arg(long, value_name = "true|false", help_heading = KEYS)]
    pub(crate) key_required: Option<bool>,

    /// Count effects by asking: GET, a path or URL, and where in the answer the count, or the list, is.
    #[arg(long, value_name = "GET PATH POINTER", help_heading = COUNTING)]
    #[arg(conflicts_with_all = ["count_command", "count_sql", "webhook_sink", "upstream_double"])]
    pub(crate) count: Option<String>,
    /// Count them by a command that prints a number; {marker} in it is replaced.
    #[arg(long, value_name = "COMMAND", help_heading = COUNTING)]
    #[arg(conflicts_with_all = ["count_sql", "webhook_sink", "upstream_double"])]
    pub(crate) count_command: Option<String>,
    /// Count them by a statement that answers with a number; $1 is the marker. It runs read-only.
    #[arg(long, value_name = "SELECT", help_heading = COUNTING)]
    #[arg(conflicts_with_all = ["webhook_sink", "upstream_double"])]
    pub(crate) count_sql: Option<String>,
    /// Where that runs: sqlite:PATH or postgres://user@host:port/database, or env:NAME.
    #[arg(long, value_name = "URL", help_heading = COUNTING)]
    pub(crate) count_store: Option<String>,
    /// Count the webhooks that arrive here with the marker in them: let the API send them here.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "upstream_double", help_heading = COUNTING)]
    pub(crate) webhook_sink: Option<SocketAddr>,
    /// Play the provider that the API asks (a bank, a mail server), and count what it asks for.
    #[arg(long, value_name = "HOST:PORT", help_heading = COUNTING)]
    pub(crate) upstream_double: Option<SocketAddr>,
    /// How long that takes from an effect to its answer.
    #[arg(long, value_name = "TIME", help_heading = COUNTING)]
    pub(crate) upstream_delay: Option<TimeSpan>,
    /// It loses one answer in so many: it closes the connection after the effect.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(2..), help_heading = COUNTING)]
    pub(crate) upstream_drop: Option<u32>,

    /// Kills the server, as SIGKILL does.
    #[arg(long, value_name = "COMMAND", help_heading = HOOKS)]
    pub(crate) kill_cmd: Option<String>,
    /// Starts it again, and ends then.
    #[arg(long, value_name = "COMMAND", help_heading = HOOKS)]
    pub(crate) start_cmd: Option<String>,
    /// Lets the next execution fail with a 5xx before its effect: a command, or 'POST URL'.
    #[arg(long, value_name = "HOOK", help_heading = HOOKS)]
    pub(crate) fail_hook: Option<String>,
    /// The same after its effect.
    #[arg(long, value_name = "HOOK", help_heading = HOOKS)]
    pub(crate) fail_after_hook: Option<String>,
    /// Makes executions slow; {milliseconds} in it is replaced.
    #[arg(long, value_name = "HOOK", help_heading = HOOKS)]
    pub(crate) slow_hook: Option<String>,
    /// Ends that.
    #[arg(long, value_name = "HOOK", help_heading = HOOKS)]
    pub(crate) fast_hook: Option<String>,
    /// Runs after everything, also after Ctrl-C, to remove what was made.
    #[arg(long, value_name = "HOOK", help_heading = HOOKS)]
    pub(crate) clean_up: Option<String>,

    /// Only these probes: numbers or names.
    #[arg(long, value_name = "PROBES", value_delimiter = ',', help_heading = BOUNDS)]
    pub(crate) only: Vec<String>,
    /// All but these.
    #[arg(long, value_name = "PROBES", value_delimiter = ',', help_heading = BOUNDS)]
    pub(crate) skip: Vec<String>,
    /// Begin no more operations than these; 200 unless told otherwise.
    #[arg(long, value_name = "N", help_heading = BOUNDS)]
    pub(crate) max_effects: Option<u32>,
    /// 1,000 trials of each race, and 10,000 keys between a request and its retry.
    #[arg(long, help_heading = BOUNDS)]
    pub(crate) thorough: bool,
    /// Trials of each race.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000), help_heading = BOUNDS)]
    pub(crate) race_trials: Option<u32>,
    /// Other keys between a request and its retry (V22); 100 unless told otherwise.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000), help_heading = BOUNDS)]
    pub(crate) keys_between: Option<u32>,
    /// Within which time a key must be free, or answered again; 30s unless told otherwise.
    #[arg(long, value_name = "TIME", help_heading = BOUNDS)]
    pub(crate) recovery: Option<TimeSpan>,
    /// Make the same choices as the run that had this seed, under new keys.
    #[arg(long, value_name = "N", visible_alias = "replay", help_heading = BOUNDS)]
    pub(crate) seed: Option<u64>,

    /// Write all that was found, as JSON.
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) json_report: Option<PathBuf>,
    /// Write a page with everything that went over the wire.
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) html: Option<PathBuf>,
    /// Write the probes as tests, for continuous integration.
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) junit: Option<PathBuf>,
    /// Write the findings for code scanning.
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the grade as a picture (SVG).
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) badge: Option<PathBuf>,
    /// Say what has changed since this JSON report.
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub(crate) compare: Option<PathBuf>,

    /// A text that names the hosts that may be examined, and behind each who allowed it.
    #[arg(long, value_name = "FILE", help_heading = CONSENT)]
    pub(crate) scope_file: Option<PathBuf>,

    /// What is written under `[[route]]`.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) route: Vec<RouteSettings>,
}

/// What a file says of one route; the rest of the file holds for each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteSettings {
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) json: Option<String>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) changed_body: Option<String>,
    #[serde(default)]
    pub(crate) invalid_body: Option<String>,
    #[serde(default)]
    pub(crate) key_header: Option<String>,
    #[serde(default)]
    pub(crate) count: Option<String>,
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) other_path: Option<String>,
    #[serde(default)]
    pub(crate) large_path: Option<String>,
}

/// Where settings come from, and where what was done is kept.
#[derive(Debug, Args)]
pub(crate) struct VerifySourceArgs {
    /// Read settings from this file (TOML); what is typed counts for more.
    #[arg(long, value_name = "FILE", help_heading = SOURCES)]
    pub(crate) config: Option<PathBuf>,
    /// Which of its routes, where there are several: 'POST /payments'.
    #[arg(long = "route", value_name = "METHOD PATH", requires = "config", help_heading = SOURCES)]
    pub(crate) route_name: Option<String>,
    /// Propose the routes of this OpenAPI document (JSON or YAML) that change something, and ask nobody.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "resume"], help_heading = SOURCES)]
    pub(crate) openapi: Option<PathBuf>,
    /// Write that as a file for --config.
    #[arg(long, value_name = "FILE", requires = "openapi", help_heading = SOURCES)]
    pub(crate) write: Option<PathBuf>,
    /// Go on with a run that was interrupted; what is left of it is kept here again.
    #[arg(long, value_name = "FILE", help_heading = SOURCES)]
    pub(crate) resume: Option<PathBuf>,
}

/// What only somebody who types it can say.
#[derive(Debug, Args)]
pub(crate) struct VerifyConsentArgs {
    /// Do not ask whether to go on.
    #[arg(long, action = ArgAction::SetTrue, help_heading = CONSENT)]
    pub(crate) yes: bool,
    /// Whoever owns the hosts of --scope-file has allowed it. Others than this machine need both.
    #[arg(long, visible_alias = "i-am-authorized", help_heading = CONSENT)]
    pub(crate) i_am_authorised: bool,
}

const REQUEST: &str = "What is asked";
const WHO: &str = "Who asks";
const KEYS: &str = "Keys";
const COUNTING: &str = "Counting effects";
const HOOKS: &str = "What can be done to the server";
const BOUNDS: &str = "How far it goes";
const REPORTS: &str = "Reports";
const SOURCES: &str = "Files";
const CONSENT: &str = "Consent";

/// How a key is written in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WrittenKey {
    /// As it is: k-1
    Bare,
    /// As a quoted string: "k-1"
    Quoted,
}

/// A time as it is typed: `250ms`, `30s`, `24h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct TimeSpan(pub(crate) Duration);

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}

impl TryFrom<String> for TimeSpan {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TimeSpan> for String {
    fn from(span: TimeSpan) -> Self {
        span.to_string()
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0.as_millis())
    }
}

fn profiles() -> clap::builder::PossibleValuesParser {
    VENDOR_PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>().into()
}
