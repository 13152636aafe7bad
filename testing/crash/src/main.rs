//! `hapax-crash drive`: kill victims and check; `hapax-crash victim`: be one.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand, ValueEnum};
use hapax_core::OneLine;
use hapax_crash::{
    CrashError,
    client::{self, ClientHunt},
    messaging::{self, MessagingHunt},
    records::{self, RecordBackend, RecordHunt},
    steps::{self, StepsHunt},
};
use hapax_services::roster::Roster;

/// Kills real processes and real servers in mid-operation, and checks what they leave behind.
#[derive(Debug, Parser)]
struct CrashArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kills victims and checks what they leave behind.
    Drive(DriveArgs),
    /// Asks for operations until it dies.
    Victim(Box<records::RecordVictimArgs>),
    /// Kills victims in the middle of operations of several effects.
    Steps(StepsArgs),
    /// Runs operations of several effects until it dies.
    StepsVictim(steps::StepsVictimArgs),
    /// Kills clients at every write of their journal.
    Client(ClientArgs),
    /// Sends operations by a client with a journal until it dies.
    ClientVictim(client::ClientVictimArgs),
    /// Kills relays and consumers, and stops the servers they work with.
    Messaging(MessagingArgs),
    /// Sends events from an outbox to a broker until it dies.
    RelayVictim(messaging::MessagingVictimArgs),
    /// Acts on messages until it dies.
    ConsumerVictim(messaging::MessagingVictimArgs),
}

#[derive(Debug, clap::Args)]
struct DriveArgs {
    /// How many processes must die on each store; more do if nobody has died at some place yet.
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// What they keep their records in.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    store: Which,
    /// What every choice is drawn from; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// How often a PostgreSQL server of its own is stopped at once; one per 25 kills if not given.
    #[arg(long)]
    server_stops: Option<usize>,
    /// How many episodes run at the same time.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// A place to die at; all of them if none is named.
    #[arg(long)]
    at: Vec<String>,
    /// The one episode to run.
    #[arg(long)]
    only: Option<usize>,
    /// What the victims do wrong, to see whether that is noticed.
    #[arg(long)]
    broken: Option<records::RecordMistake>,
    /// The PostgreSQL server to use; one of its own if not given.
    #[arg(long, env = "HAPAX_POSTGRES_URL")]
    postgres_url: Option<String>,
}

#[derive(Debug, clap::Args)]
struct StepsArgs {
    /// How many processes must die on each store; more do if nobody has died at some place yet.
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// What every choice is drawn from; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// The PostgreSQL server to use; only SQLite if there is none.
    #[arg(long, env = "HAPAX_POSTGRES_URL")]
    postgres_url: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ClientArgs {
    /// How many processes must die; more do if too few have died at some place yet.
    #[arg(long, default_value_t = 300)]
    kills: usize,
    /// What every choice is drawn from; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// How many journals are worked on at the same time.
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// The one journal to repeat.
    #[arg(long)]
    only: Option<usize>,
    /// What is done wrong, to see whether that is noticed.
    #[arg(long)]
    broken: Option<client::ClientMistake>,
}

#[derive(Debug, clap::Args)]
struct MessagingArgs {
    /// How many processes must die with each outbox, half of them relays and half consumers; more
    /// do if nobody has died at some place yet.
    #[arg(long, default_value_t = 300)]
    kills: usize,
    /// What the outbox is in. The effects are in PostgreSQL.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    store: Which,
    /// What every choice is drawn from; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// How many ways there are from the outbox to the effects, each with two relays and two
    /// consumers.
    #[arg(long, default_value_t = 4)]
    lines: usize,
    /// A place to die at; all of them if none is named.
    #[arg(long)]
    at: Vec<String>,
    /// For how many seconds the broker is frozen now and then.
    #[arg(long, default_value_t = 2)]
    frozen_s: u64,
    /// What the victims do wrong, to see whether that is noticed.
    #[arg(long)]
    broken: Option<messaging::MessagingMistake>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Sqlite,
    Postgres,
    Both,
}

fn main() -> ExitCode {
    let done = match CrashArgs::parse().command {
        Command::Drive(args) => hunt_records(&args),
        Command::Victim(args) => records::victim::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Steps(args) => hunt_steps(&args),
        Command::StepsVictim(args) => steps::victim::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Client(args) => hunt_clients(&args),
        Command::ClientVictim(args) => client::victim::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Messaging(args) => hunt_messaging(&args),
        Command::RelayVictim(args) => messaging::relay::run(&args).map(|()| ExitCode::SUCCESS),
        Command::ConsumerVictim(args) => {
            messaging::consumer::run(&args).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "{}", OneLine::of(&error));
        ExitCode::from(2)
    })
}

fn hunt_records(args: &DriveArgs) -> Result<ExitCode, CrashError> {
    let (program, seed) = (this_program()?, seed(args.seed));
    let url = postgres_url(args.postgres_url.as_ref());
    let backends = match args.store {
        Which::Sqlite => vec![RecordBackend::Sqlite],
        Which::Postgres => vec![RecordBackend::Postgres { url }],
        Which::Both => vec![RecordBackend::Sqlite, RecordBackend::Postgres { url }],
    };
    let mut violations = 0;
    for backend in backends {
        let name = backend.as_str();
        say(&format!("{name}: seed {seed}"));
        let default_stops = if args.only.is_some() { 0 } else { args.kills / 25 };
        let hunt = RecordHunt {
            program: program.clone(),
            backend,
            kills: args.kills,
            server_stops: args.server_stops.unwrap_or(default_stops),
            seed,
            workers: args.workers,
            at: args.at.clone(),
            only: args.only,
            broken: args.broken,
        };
        let report = hunt.run(&|so_far| {
            let (kills, stops) = (so_far.deaths.kills(), so_far.servers_stopped);
            let (keys, found) = (so_far.keys, so_far.findings.len());
            say(&format!("{name}: {kills} killed, {stops} stops, {keys} keys, {found} violations"));
        })?;
        say(&format!("{name}:\n{report}"));
        violations += report.findings.len();
    }
    Ok(verdict(violations))
}

fn hunt_steps(args: &StepsArgs) -> Result<ExitCode, CrashError> {
    let (program, seed) = (this_program()?, seed(args.seed));
    let url = postgres_url(args.postgres_url.as_ref());
    let mut violations = 0;
    for postgres_url in [None].into_iter().chain(url.map(Some)) {
        let name = if postgres_url.is_some() { "postgres" } else { "sqlite" };
        say(&format!("{name}: seed {seed}"));
        let (program, kills) = (program.clone(), args.kills);
        let hunt = StepsHunt { program, postgres_url, kills, seed, never_probe: false };
        let report = hunt.run()?;
        say(&format!("{name}: {report}"));
        violations += report.findings.len();
    }
    Ok(verdict(violations))
}

fn hunt_clients(args: &ClientArgs) -> Result<ExitCode, CrashError> {
    let (program, seed) = (this_program()?, seed(args.seed));
    let &ClientArgs { kills, workers, only, broken, .. } = args;
    say(&format!("client: seed {seed}"));
    let hunt = ClientHunt { program, kills, seed, workers, only, broken };
    let report = hunt.run(&|so_far| {
        let (kills, found) = (so_far.deaths.kills(), so_far.findings.len());
        say(&format!("client: {kills} killed, {found} violations"));
    })?;
    say(&format!("client: seed {seed}\n{report}"));
    Ok(verdict(report.findings.len()))
}

fn hunt_messaging(args: &MessagingArgs) -> Result<ExitCode, CrashError> {
    let (program, seed) = (this_program()?, seed(args.seed));
    let stores = match args.store {
        Which::Sqlite => &[true][..],
        Which::Postgres => &[false],
        Which::Both => &[true, false],
    };
    let mut violations = 0;
    for &sqlite in stores {
        let name = if sqlite { "sqlite" } else { "postgres" };
        say(&format!("messaging on {name}: seed {seed}"));
        let hunt = MessagingHunt {
            program: program.clone(),
            sqlite,
            kills: args.kills,
            seed,
            lines: args.lines.max(1),
            at: args.at.clone(),
            frozen: Some(Duration::from_secs(args.frozen_s)),
            broken: args.broken,
        };
        let report = hunt.run(&|so_far| {
            let (relays, consumers) = (so_far.relays.kills(), so_far.consumers.kills());
            say(&format!("messaging on {name}: {relays} relays, {consumers} consumers killed"));
        })?;
        say(&format!("messaging on {name}: seed {seed}\n{report}"));
        violations += report.findings.len();
    }
    Ok(verdict(violations))
}

fn this_program() -> Result<PathBuf, CrashError> {
    env::current_exe()
        .map_err(|source| CrashError::Io { action: "find this program".to_owned(), source })
}

fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| fastrand::u64(..))
}

fn postgres_url(given: Option<&String>) -> Option<String> {
    given.cloned().or_else(|| Roster::at(Path::new(".services")).url())
}

fn verdict(violations: usize) -> ExitCode {
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Output that nobody reads is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
