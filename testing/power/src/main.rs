//! `hapax-power hunt`: take the power away and check; `hapax-power work`: be what it is taken from.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use hapax_core::OneLine;
use hapax_power::{
    PowerError,
    disk::Syncs,
    hunt::{PowerHunt, PowerReport},
    journal::{self, JournalHunt},
    plan::Workload,
    work::{self, Work},
};
use hapax_sqlite::Durability;

/// Takes the power away at every write and sync of a file, and checks what is left.
#[derive(Debug, Parser)]
struct PowerArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Records workloads, takes the power away at many moments of each, and checks what is left.
    Hunt(HuntArgs),
    /// Fills a store with what is there before a workload begins.
    Fill(WorkArgs),
    /// Does a workload.
    Work(WorkArgs),
    /// Opens a store and closes it.
    Open(DirArgs),
    /// Keeps the journal of a client.
    Journal(DirArgs),
    /// Keeps the journal of a client, and encrypts it halfway.
    EncryptedJournal(DirArgs),
}

#[derive(Debug, clap::Args)]
struct HuntArgs {
    /// For how long workloads are recorded and judged, in seconds; each is judged once in any case.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many images of one recording are judged, at most.
    #[arg(long, default_value_t = 2000)]
    images: usize,
    /// What every choice is drawn from; random if not given. How threads run is not drawn from it.
    #[arg(long)]
    seed: Option<u64>,
    /// At how many moments of each recording the power is lost again while the store is opened after it.
    #[arg(long, default_value_t = 10)]
    again: usize,
    /// A workload to record; all of them if none is named.
    #[arg(long, value_enum)]
    workload: Vec<Workload>,
    /// The last commits need not survive the loss of power, but nothing may be damaged or half done.
    #[arg(long)]
    normal: bool,
    /// Syncs are worth nothing after so many, to see whether that is noticed.
    #[arg(long)]
    ignore_syncs_after: Option<usize>,
}

#[derive(Debug, clap::Args)]
struct WorkArgs {
    /// The directory all files are in.
    #[arg(long)]
    dir: PathBuf,
    /// What is done.
    #[arg(long, value_enum)]
    workload: Workload,
    /// What its plan is drawn from.
    #[arg(long)]
    seed: u64,
    /// Which of several processes this is.
    #[arg(long, default_value_t = 0)]
    part: usize,
    /// Commits need not survive the loss of power.
    #[arg(long)]
    normal: bool,
}

#[derive(Debug, clap::Args)]
struct DirArgs {
    /// The directory all files are in.
    #[arg(long)]
    dir: PathBuf,
}

impl WorkArgs {
    fn work(self) -> Work {
        let Self { dir, workload, seed, part, normal } = self;
        Work { dir, workload, seed, durability: durability(normal), part }
    }
}

fn main() -> ExitCode {
    let done = match PowerArgs::parse().command {
        Command::Hunt(args) => hunt(&args),
        Command::Fill(args) => args.work().fill().map(|()| ExitCode::SUCCESS),
        Command::Work(args) => args.work().run().map(|()| ExitCode::SUCCESS),
        Command::Open(args) => work::open(&args.dir).map(|()| ExitCode::SUCCESS),
        Command::Journal(args) => journal::work(&args.dir, false).map(|()| ExitCode::SUCCESS),
        Command::EncryptedJournal(args) => {
            journal::work(&args.dir, true).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "{}", OneLine::of(&error));
        ExitCode::from(2)
    })
}

fn hunt(args: &HuntArgs) -> Result<ExitCode, PowerError> {
    let program = env::current_exe()
        .map_err(|source| PowerError::Io { action: "find this program".to_owned(), source })?;
    let all = if args.workload.is_empty() { &Workload::ALL[..] } else { &args.workload };
    let mut seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let watch = Watch::start();
    let mut sum = PowerReport::default();
    while sum.moments == 0 || watch.elapsed() < Duration::from_secs(args.seconds) {
        for &workload in all {
            let hunt = PowerHunt {
                program: program.clone(),
                workload,
                seed,
                images: args.images,
                again: args.again,
                durability: durability(args.normal),
                promise: durability(args.normal),
                syncs: args.ignore_syncs_after.map_or(Syncs::Honest, Syncs::IgnoredAfter),
            };
            let report = hunt.run()?;
            say(&format!("{workload}, seed {seed}: {report}"));
            sum.add(report);
        }
        if args.workload.is_empty() {
            for encrypted in [false, true] {
                let (program, syncs) = (program.clone(), Syncs::Honest);
                let report = JournalHunt { program, seed, syncs, encrypted }.run()?;
                let kind = if encrypted { "encrypted journal" } else { "journal" };
                say(&format!("client's {kind}, seed {seed}: {report}"));
                sum.add(report);
            }
        }
        seed = seed.wrapping_add(1);
    }
    say(&format!("\n{} violations in {} images", sum.findings.len(), sum.images));
    Ok(if sum.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn durability(normal: bool) -> Durability {
    if normal { Durability::Normal } else { Durability::Full }
}

/// Output that nobody reads is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

struct Watch(Instant);

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "whoever gave it some time waits in real time")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
