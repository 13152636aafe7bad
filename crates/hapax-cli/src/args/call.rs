//! What people type after `hapax call`.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, ArgGroup, Args, value_parser};
use hapax::{
    Key,
    client::journal::{Name, is_credential},
    limits::{RETENTION_MAX, RETRY_ATTEMPTS_MAX},
    tower::IDEMPOTENCY_KEY,
};
use http::{HeaderName, HeaderValue, Method, Uri, header};

use super::encryption::MasterKeyArgs;

/// Send a request, and again with the same key, until it is answered: a curl that finishes the job.
///
/// The request and its key are written to a journal before anything is sent. Whatever happens then
/// (Ctrl-C, SIGKILL, a reboot), `hapax call --resume` goes on with the same key, so that an API
/// that knows Idempotency-Key does it once.
///
/// The body of the answer goes to standard output, and nothing else does. What happens meanwhile is
/// told on standard error: a line of progress on a terminal, JSON lines elsewhere.
///
/// Headers given with -H are kept in the journal, credentials included, so that a resume can send
/// them: the file is readable by its owner alone. --header-env keeps them out, and --master-key-file
/// encrypts what is in it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("task").args(["resume", "list", "show", "forget"])))]
#[command(override_usage = "\
hapax call [OPTIONS] METHOD URL
       hapax call --resume [NAME] [--deadline TIME]
       hapax call --list [--json]
       hapax call --show NAME [--json]
       hapax call --forget NAME [--force]")]
#[command(after_help = "\
Examples:
  hapax call POST https://api.example.com/charges --json '{\"amount\": 100}'
  hapax call POST https://api.example.com/charges --json @charge.json --name charge-order-42 --deadline 5m
  hapax call POST https://api.example.com/charges --json @charge.json --header-env Authorization=TOKEN
  hapax call --resume                    finish everything that was left pending
  hapax call --resume charge-order-42    finish this one, and print its answer
  hapax call --list

Exit status: 0 done; 3 refused: the answer says no; 4 unknown: it may have happened, resume it;
5 gave up: it did not happen; 1 another error; 2 the arguments mean nothing, nothing was sent;
130, 143 ended by Ctrl-C or SIGTERM: resume it.")]
pub(crate) struct CallArgs {
    /// The method, such as POST.
    #[arg(value_name = "METHOD", value_parser = method, requires = "url", conflicts_with = "task")]
    #[arg(required_unless_present = "task")]
    pub(crate) method: Option<Method>,
    /// Where to, in full.
    #[arg(value_name = "URL", value_parser = url)]
    pub(crate) url: Option<Uri>,

    #[command(flatten)]
    pub(crate) request: CallRequestArgs,
    #[command(flatten)]
    pub(crate) pace: CallPaceArgs,
    #[command(flatten)]
    pub(crate) kept: CallKeptArgs,
    #[command(flatten)]
    pub(crate) output: CallOutputArgs,
    #[command(flatten)]
    pub(crate) task: CallTaskArgs,
}

/// What is sent.
#[derive(Debug, Args)]
pub(crate) struct CallRequestArgs {
    /// Send this JSON: text, @FILE, or - for what comes on standard input. After --list and --show,
    /// without a value: answer in JSON.
    #[arg(long, value_name = "TEXT|@FILE|-", num_args = 0..=1, action = ArgAction::Set)]
    #[arg(conflicts_with_all = ["data", "resume", "forget"])]
    pub(crate) json: Option<Vec<String>>,
    /// Send this as it is: text, @FILE, or - for what comes on standard input. Say with -H what it is.
    #[arg(long, short, value_name = "TEXT|@FILE|-", conflicts_with = "task")]
    pub(crate) data: Option<String>,
    /// Send a header; may be repeated. It is kept in the journal.
    #[arg(long, short = 'H', value_name = "NAME:VALUE", value_parser = named)]
    #[arg(conflicts_with = "task")]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,
    /// Send Authorization, Cookie or Proxy-Authorization with the value of a variable of the
    /// environment, and keep it out of the journal. A resume needs it again.
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = from_environment)]
    #[arg(conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) header_env: Vec<(HeaderName, String)>,
}

/// How long and how often.
#[derive(Debug, Args)]
pub(crate) struct CallPaceArgs {
    /// How long all attempts together may take, such as 30s, 5m or 2h; a minute unless told
    /// otherwise. A resume goes on for what was left, and for a minute at least.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) deadline: Option<Duration>,
    /// How long one attempt may take.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    #[arg(conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) attempt_timeout: Duration,
    /// Most attempts; as many as fit into the deadline unless told otherwise.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(RETRY_ATTEMPTS_MAX)))]
    #[arg(conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) attempts: Option<u32>,
}

/// What it is called, and where it is kept.
#[derive(Debug, Args)]
pub(crate) struct CallKeptArgs {
    /// What this operation is called. The same call under the same name happens once: when it is
    /// over, its recorded answer is printed and nothing is sent.
    #[arg(long, value_parser = |raw: &str| Name::parse(raw), conflicts_with = "task")]
    pub(crate) name: Option<Name>,
    /// The Idempotency-Key to send, instead of a new one. It is also the name unless there is one.
    #[arg(long, value_parser = |raw: &str| Key::parse(raw), conflicts_with = "task")]
    pub(crate) key: Option<Key>,
    /// The journal; $XDG_STATE_HOME/hapax/calls.db or ~/.local/state/hapax/calls.db unless told
    /// otherwise.
    #[arg(long, env = "HAPAX_JOURNAL", value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: MasterKeyArgs,
    /// Keep no journal: the key lives in memory, and nothing can be resumed.
    #[arg(long, conflicts_with_all = ["task", "name"])]
    pub(crate) no_journal: bool,
}

/// Where the answer goes, and what is said.
#[derive(Debug, Args)]
pub(crate) struct CallOutputArgs {
    /// Print the status and the headers of the answer before its body.
    #[arg(long, short, conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) include: bool,
    /// Write the answer to this file instead of standard output.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["list", "show", "forget"])]
    pub(crate) output: Option<PathBuf>,
    /// Say nothing while it goes on, and at the end only what went wrong.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to do instead of sending something new.
#[derive(Debug, Args)]
pub(crate) struct CallTaskArgs {
    /// Finish what is pending with the key it was begun with. With a name also what is unknown or
    /// was given up; the answer is printed.
    #[arg(long, value_name = "NAME", num_args = 0..=1, action = ArgAction::Set)]
    #[arg(value_parser = |raw: &str| Name::parse(raw))]
    pub(crate) resume: Option<Vec<Name>>,
    /// List the operations of the journal, the oldest first.
    #[arg(long)]
    pub(crate) list: bool,
    /// Show what the journal knows of an operation, without credentials.
    #[arg(long, value_name = "NAME", value_parser = |raw: &str| Name::parse(raw))]
    pub(crate) show: Option<Name>,
    /// Forget an operation that is over. The next call under its name gets a new key.
    #[arg(long, value_name = "NAME", value_parser = |raw: &str| Name::parse(raw))]
    pub(crate) forget: Option<Name>,
    /// Forget it even if it is pending: it may have been sent, and then nobody finds out.
    // What conflicts with `forget` would excuse its absence, so it is named here too.
    #[arg(long, requires = "forget", conflicts_with_all = ["method", "resume", "list", "show"])]
    pub(crate) force: bool,
}

fn method(raw: &str) -> Result<Method, String> {
    let advice = "write the method first, such as POST, and then the URL";
    let known = Method::from_bytes(raw.to_ascii_uppercase().as_bytes()).map_err(|_| advice)?;
    if known == Method::CONNECT {
        return Err("CONNECT makes a tunnel, and nothing can be sent once through it".to_owned());
    }
    // The methods of the standards are all in capitals; one that is not among them is left alone.
    let is_standard = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ]
    .contains(&known);
    if is_standard {
        Ok(known)
    } else {
        Method::from_bytes(raw.as_bytes()).map_err(|_| advice.into())
    }
}

fn url(raw: &str) -> Result<Uri, String> {
    let advice = "write it in full, as in https://api.example.com/charges";
    // What follows # is for the reader of a page, and never sent.
    let sent = raw.split('#').next().unwrap_or(raw);
    let url: Uri = sent.parse().map_err(|error| format!("{error}; {advice}"))?;
    let Some(authority) =
        url.authority().filter(|_| matches!(url.scheme_str(), Some("http" | "https")))
    else {
        return Err(advice.to_owned());
    };
    if authority.as_str().contains('@') {
        return Err("it holds a user or a password; send them in the header Authorization".into());
    }
    Ok(url)
}

fn named(raw: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = raw.split_once(':').ok_or("write NAME:VALUE")?;
    let name = header_name(name.trim())?;
    let value = HeaderValue::try_from(value.trim()).map_err(|error| error.to_string())?;
    Ok((name, value))
}

fn header_name(raw: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(raw).map_err(|_| format!("{raw:?} is no name of a header"))?;
    if name == IDEMPOTENCY_KEY {
        return Err("give the key with --key".to_owned());
    }
    if [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION].contains(&name) {
        return Err(format!("{name} is set by itself"));
    }
    Ok(name)
}

fn from_environment(raw: &str) -> Result<(HeaderName, String), String> {
    let (name, variable) = raw.split_once('=').ok_or("write NAME=VARIABLE")?;
    let name = header_name(name.trim())?;
    if !is_credential(&name) {
        let known = "only what is called like a secret, such as Authorization or X-Api-Key,";
        return Err(format!("{known} can be kept out of the journal; give {name} with -H"));
    }
    Ok((name, variable.to_owned()))
}

/// `250ms`, `10s`, `5m`, `24h`, `7d`; longer than nothing.
pub(crate) fn duration(raw: &str) -> Result<Duration, String> {
    let advice = "write a whole number and a unit, such as 250ms, 30s, 5m or 2h";
    let end = raw.find(|c: char| !c.is_ascii_digit()).ok_or(advice)?;
    let (count, unit) = raw.split_at(end);
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(advice.to_owned()),
    };
    let count: u64 = count.parse().map_err(|_| advice)?;
    let span = count.checked_mul(millis).map(Duration::from_millis);
    let span = span.filter(|span| *span <= RETENTION_MAX);
    let span = span.ok_or_else(|| format!("at most {}d", RETENTION_MAX.as_secs() / 86_400))?;
    if span.is_zero() { Err("it must be longer than nothing".to_owned()) } else { Ok(span) }
}
