//! `hapax-crash drive`: kill victims and check; `hapax-crash victim`: be one.

use std::{
    env,
    error::Error,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand, ValueEnum};
use hapax_crash::{
    CrashError, client,
    drive::{Backend, Drive, Summary},
    messaging, steps,
    victim::{self, Broken, Orders},
};
use hapax_services::roster::Roster;

/// Kills real processes and real servers in mid-operation, and checks what they leave behind.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kills victims and checks what they leave behind.
    Drive(DriveArgs),
    /// Asks for operations until it dies.
    Victim(Box<Orders>),
    /// Kills victims in the middle of operations of several effects.
    Steps(StepsArgs),
    /// Runs operations of several effects until it dies.
    StepsVictim(steps::victim::Orders),
    /// Kills clients at every write of their journal.
    Client(ClientArgs),
    /// Sends operations by a client with a journal until it dies.
    ClientVictim(client::Orders),
    /// Kills relays and consumers, and stops the servers they work with.
    Messaging(MessagingArgs),
    /// Sends events from an outbox to a broker until it dies.
    RelayVictim(messaging::Orders),
    /// Acts on messages until it dies.
    ConsumerVictim(messaging::Orders),
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
    broken: Option<Broken>,
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
    broken: Option<client::Broken>,
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
    broken: Option<messaging::Broken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Sqlite,
    Postgres,
    Both,
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Drive(args) => drive(&args),
        Command::Victim(orders) => victim::run(&orders).map(|()| ExitCode::SUCCESS),
        Command::Steps(args) => drive_steps(&args),
        Command::StepsVictim(orders) => steps::victim::run(&orders).map(|()| ExitCode::SUCCESS),
        Command::Client(args) => drive_clients(&args),
        Command::ClientVictim(orders) => client::victim::run(&orders).map(|()| ExitCode::SUCCESS),
        Command::Messaging(args) => drive_messaging(&args),
        Command::RelayVictim(orders) => messaging::relay::run(&orders).map(|()| ExitCode::SUCCESS),
        Command::ConsumerVictim(orders) => {
            messaging::consumer::run(&orders).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        let _ = writeln!(io::stderr(), "{message}");
        ExitCode::from(2)
    })
}

fn drive(args: &DriveArgs) -> Result<ExitCode, CrashError> {
    let program = env::current_exe()
        .map_err(|source| CrashError::Io { action: "find this program".to_owned(), source })?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let url = args.postgres_url.clone().or_else(|| Roster::at(Path::new(".services")).url());
    let backends = match args.store {
        Which::Sqlite => vec![Backend::Sqlite],
        Which::Postgres => vec![Backend::Postgres { url }],
        Which::Both => vec![Backend::Sqlite, Backend::Postgres { url }],
    };
    let mut broken = false;
    for backend in backends {
        let name = backend.as_str();
        say(&format!("{name}: seed {seed}"));
        let default_stops = if args.only.is_some() { 0 } else { args.kills / 25 };
        let drive = Drive {
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
        let summary = drive.run(&|summary| progress(name, summary))?;
        say(&format!("{name}:\n{summary}"));
        broken |= !summary.findings.is_empty();
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn drive_steps(args: &StepsArgs) -> Result<ExitCode, CrashError> {
    let program = env::current_exe()
        .map_err(|source| CrashError::Io { action: "find this program".to_owned(), source })?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let url = args.postgres_url.clone().or_else(|| Roster::at(Path::new(".services")).url());
    let mut broken = false;
    for postgres_url in [None].into_iter().chain(url.map(Some)) {
        let name = if postgres_url.is_some() { "postgres" } else { "sqlite" };
        say(&format!("{name}: seed {seed}"));
        let (program, kills) = (program.clone(), args.kills);
        let drive = steps::Drive { program, postgres_url, kills, seed, never_probe: false };
        let summary = drive.run()?;
        say(&format!("{name}: {summary}"));
        broken |= !summary.findings.is_empty();
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn drive_clients(args: &ClientArgs) -> Result<ExitCode, CrashError> {
    let program = env::current_exe()
        .map_err(|source| CrashError::Io { action: "find this program".to_owned(), source })?;
    let &ClientArgs { kills, workers, only, broken, .. } = args;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    say(&format!("client: seed {seed}"));
    let drive = client::Drive { program, kills, seed, workers, only, broken };
    let summary = drive.run(&|summary| {
        let (kills, violations) = (summary.kills(), summary.findings.len());
        say(&format!("client: {kills} killed, {violations} violations"));
    })?;
    say(&format!("client: seed {seed}\n{summary}"));
    Ok(if summary.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn drive_messaging(args: &MessagingArgs) -> Result<ExitCode, CrashError> {
    let program = env::current_exe()
        .map_err(|source| CrashError::Io { action: "find this program".to_owned(), source })?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let stores = match args.store {
        Which::Sqlite => &[true][..],
        Which::Postgres => &[false],
        Which::Both => &[true, false],
    };
    let mut broken = false;
    for &sqlite in stores {
        let name = if sqlite { "sqlite" } else { "postgres" };
        say(&format!("messaging on {name}: seed {seed}"));
        let drive = messaging::Drive {
            program: program.clone(),
            sqlite,
            kills: args.kills,
            seed,
            lines: args.lines.max(1),
            at: args.at.clone(),
            frozen: Some(Duration::from_secs(args.frozen_s)),
            broken: args.broken,
        };
        let summary = drive.run(&|summary| {
            let (relays, consumers) = (summary.relays.kills(), summary.consumers.kills());
            say(&format!("messaging on {name}: {relays} relays, {consumers} consumers killed"));
        })?;
        say(&format!("messaging on {name}: seed {seed}\n{summary}"));
        broken |= !summary.findings.is_empty();
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn progress(name: &str, summary: &Summary) {
    let (kills, stops) = (summary.kills(), summary.servers_stopped);
    let (keys, violations) = (summary.keys, summary.findings.len());
    say(&format!("{name}: {kills} killed, {stops} stops, {keys} keys, {violations} violations"));
}

/// Output that nobody reads is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
