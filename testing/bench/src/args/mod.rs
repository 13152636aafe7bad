//! What people type after `cargo xtask bench`.

mod operating;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, value_parser};

pub(crate) use self::operating::{OperatingArgs, OperatingPart};

/// What to type, for those who ask.
const EXAMPLES: &str = "\
Examples:
  cargo xtask bench all --quick                         whether it works, in two minutes
  cargo xtask bench all --html report.html              everything, with charts
  cargo xtask bench http --ways nginx,sqlite            one comparison
  cargo xtask bench store --callers 64 --json out.json  every measurement, for programs
";

/// Measure Hapax on this machine.
///
/// Every bench runs the ways a user would choose instead beside ours, in turn, and prints the ratio
/// with every figure.
#[derive(Debug, Parser)]
#[command(name = "hapax-bench", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: BenchTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchTask {
    /// Measure everything below, one after the other, and report it together.
    ///
    /// What needs a program that is not there (nginx, PostgreSQL) is named in the report, with what to
    /// install; the rest is measured. An interrupt ends the run, and what was measured is reported.
    All(AllArgs),

    /// Compare the stores with the usual hand-written way, side by side in one run.
    ///
    /// One request is a durable claim and a durable settle with a body of 512 bytes. Both ways run
    /// alternately, on fresh files and databases in the temporary directory (TMPDIR moves it).
    Store(StoreArgs),

    /// Compare one business insert, bare and protected in the same transaction, side by side.
    ///
    /// One request is a transaction with one insert into a table of payments, on PostgreSQL: bare;
    /// with its claim and its answer of 512 bytes in the same transaction, in Rust and through the
    /// SQL functions; and with a claim and an answer written by hand in two commits.
    Tx(TxArgs),

    /// Show how requests per second and p99 grow: with callers, keys, answers, retries and purges.
    ///
    /// Stores are filled beforehand by SQL in bulk, in the temporary directory (TMPDIR moves it).
    /// Ten million keys take about 8 GB on each store; --keys-max sets another end.
    Curves(CurvesArgs),

    /// Compare the gateway with nginx in front of one upstream, side by side in one run.
    ///
    /// One request is a POST with a key and a body of about 250 bytes, answered with 512 bytes. The
    /// load, the upstream and what stands between them are processes of this machine and share its
    /// cores; compare the ratios and the CPU time per request. Each measurement starts fresh
    /// processes and fresh stores in the temporary directory (TMPDIR moves it).
    Http(HttpArgs),

    /// Compare the outbox and its relay with the usual hand-written ones, side by side in one run.
    ///
    /// An event has a payload of 200 bytes. The writers, PostgreSQL, and what reads the log share the
    /// cores of this machine. Whatever arrives is checked: a figure is worthless if an event was lost,
    /// came twice, or came before an earlier one of its key.
    Outbox(OutboxBenchArgs),

    /// Compare calls through the client with bare reqwest, and its journal with one written by hand.
    ///
    /// One call is a POST with a key and a body of about 250 bytes, answered with 512 bytes by an
    /// upstream in a process of its own, over connections that are kept. Journals are files in the
    /// temporary directory (TMPDIR moves it).
    Client(ClientBenchArgs),

    /// Measure what it costs to operate a gateway: telemetry, encryption, the dashboard, TLS to PostgreSQL.
    ///
    /// Each is measured with and without, in turn, each time with fresh processes and fresh stores in
    /// the temporary directory (TMPDIR moves it). What a process has used is counted by its CPU time,
    /// which changes little when somebody else uses the machine; requests per second need a quiet one.
    Operating(OperatingArgs),

    /// The upstream of `cargo xtask bench http`, `client` and `operating`.
    #[command(hide = true)]
    HttpUpstream {
        /// Where the number of its port is written.
        #[arg(long, value_name = "FILE")]
        port_file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct AllArgs {
    /// Which benches; all unless told otherwise.
    #[arg(long, value_name = "BENCH,...", value_delimiter = ',', value_enum)]
    pub(crate) only: Option<Vec<BenchName>>,

    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    #[command(flatten)]
    pub(crate) program: ProgramArgs,
}

/// A part of `cargo xtask bench all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchName {
    Store,
    Tx,
    Http,
    Outbox,
    Client,
    Operating,
    Curves,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// How the hand-written way on PostgreSQL sends its statements: prepared once per connection, or
    /// as text with every call, as a client does that is not told otherwise.
    #[arg(long, value_enum, default_value_t = Statements::Prepared)]
    pub(crate) statements: Statements,

    /// How many callers ask at the same time, one measurement each [default: 1,16,64,256].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = callers)]
    pub(crate) callers: Option<Vec<usize>>,

    /// How many keys the SQLite file is filled with; zero leaves out the fill and the replays
    /// [default: 1000000].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) fill: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TxArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// How many callers ask at the same time, one measurement each [default: 1,16,64,256].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = callers)]
    pub(crate) callers: Option<Vec<usize>>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CurvesArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// Which curves are measured; all unless told otherwise.
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_enum)]
    pub(crate) parts: Option<Vec<CurvesPart>>,

    /// On which stores; both unless told otherwise.
    #[arg(long, value_name = "STORE,...", value_delimiter = ',', value_enum)]
    pub(crate) stores: Option<Vec<CurvesStore>>,

    /// How many keys the largest store holds [default: 10000000].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1000..=100_000_000))]
    pub(crate) keys_max: Option<u64>,
}

/// A part of `cargo xtask bench curves`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CurvesPart {
    /// More and more callers ask at the same time, ours and by hand.
    Callers,
    /// More and more keys are in the store.
    Keys,
    /// Answers become larger, ours and by hand.
    Body,
    /// More and more requests are retries of finished ones.
    Duplicates,
    /// Records past retention are removed meanwhile.
    Retention,
}

impl CurvesPart {
    pub(crate) const ALL: [Self; 5] =
        [Self::Callers, Self::Keys, Self::Body, Self::Duplicates, Self::Retention];
}

/// A store that curves are measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CurvesStore {
    Sqlite,
    Postgres,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxBenchArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// Which parts are measured; all unless told otherwise.
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_enum)]
    pub(crate) parts: Option<Vec<OutboxPart>>,

    /// How many events a log is filled with before it is emptied [default: 200000].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1000..=900_000))]
    pub(crate) events: Option<u64>,

    /// How many callers write at the same time.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = callers)]
    pub(crate) callers: usize,

    /// How many events a second are written where the delay is measured.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,

    /// For how long a snapshot is held [default: 60].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) hold: Option<f64>,
}

/// A part of `cargo xtask bench outbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutboxPart {
    /// A full log is emptied as fast as it goes.
    Drain,
    /// Many callers write events, each committed by itself.
    Enqueue,
    /// Events are written at a fixed rate, and the delay from commit to sink is measured.
    Latency,
    /// The same log, while somebody holds an old snapshot.
    Held,
    /// A relay that has nothing to do.
    Idle,
    /// Messages are acted on in transactions, bare and with their record.
    Inbox,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HttpArgs {
    /// Which ways are measured; all unless told otherwise.
    #[arg(long, value_name = "WAY,...", value_delimiter = ',', value_enum)]
    pub(crate) ways: Option<Vec<HttpWay>>,

    /// Measure the gateway's memory instead of its speed.
    #[arg(long, conflicts_with_all = ["ways", "postgres", "quick", "rounds", "seconds", "connections"])]
    pub(crate) memory: bool,

    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// How many connections make requests at the same time, one measurement each [default: 64,256].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = callers)]
    pub(crate) connections: Option<Vec<usize>>,

    #[command(flatten)]
    pub(crate) program: ProgramArgs,
}

/// Where the program is that is measured from outside.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProgramArgs {
    /// The program `hapax` to start as the gateway; the one beside this program unless told otherwise.
    #[arg(long = "program", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClientBenchArgs {
    /// How many callers ask at the same time, each over a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = callers)]
    pub(crate) callers: usize,

    /// Make every commit of both journals wait this much longer, as on a disk that is slower to sync.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0,
          value_parser = value_parser!(u32).range(..=1_000_000))]
    pub(crate) sync_us: u32,

    /// A short run: whether it works, not how fast it is.
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often each way is measured [default: 9].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,

    /// How long each measurement lasts [default: 1.5].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// How things are measured, whatever they are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct MeasureArgs {
    /// The PostgreSQL server to use, whose user may create databases, or `none`. Without it, a
    /// server of its own is started in the temporary directory.
    #[arg(long, value_name = "URL|none")]
    pub(crate) postgres: Option<String>,

    /// A short run: whether it works, not how fast it is.
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often each way is measured [default: 5].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,

    /// How long each measurement lasts; over HTTP once as fast as it goes and once at half that rate
    /// [default: 3].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Where the report goes, beside the terminal.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Write every figure to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the report with its charts to this file, one page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write each chart into a file of its own in this directory, for documents.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,
}

/// A way to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpWay {
    /// Nothing stands between.
    Direct,
    /// nginx passes requests on.
    Nginx,
    /// The gateway passes requests on.
    Unprotected,
    /// The gateway protects each request, with its records in a file.
    Sqlite,
    /// The gateway protects each request, with its records on a server.
    Postgres,
    /// The gateway answers retries of requests that are done.
    Replay,
}

/// How a hand-written client sends its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Statements {
    Prepared,
    Text,
}

pub(super) fn seconds(raw: &str) -> Result<f64, String> {
    let seconds: f64 = raw.parse().map_err(|_| "give a number of seconds".to_owned())?;
    let allowed = 0.05..=3600.0;
    if allowed.contains(&seconds) { Ok(seconds) } else { Err("give 0.05 to 3600".to_owned()) }
}

fn callers(raw: &str) -> Result<usize, String> {
    let callers: usize = raw.trim().parse().map_err(|_| "give whole numbers".to_owned())?;
    let allowed = 1..=10_000;
    if allowed.contains(&callers) { Ok(callers) } else { Err("give 1 to 10000".to_owned()) }
}
