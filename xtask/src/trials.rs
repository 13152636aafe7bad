//! `cargo xtask sim`, `cargo xtask crash` and `cargo xtask power`: the long forms of what `ci` runs short.

use std::path::Path;

use clap::Args;

use crate::{
    TaskFailure,
    ci::{cargo, command, succeed},
};

/// How many simulated runs, or which one.
#[derive(Debug, Args)]
pub struct Sim {
    /// How many seeds to run, on every core.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this one, with everything there is to tell about it.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Of clients with journals and a server, over a network that fails.
    #[arg(long)]
    client: bool,
}

impl Sim {
    /// Runs the simulator, optimised.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let Self { seeds, from, seed, client } = self;
        if *client {
            let (from, seeds) = seed.map_or((*from, *seeds), |seed| (seed, 1));
            let mut command = command(root);
            command.args(["test", "--locked", "--release", "-p", "hapax-client", "--test", "sim"]);
            command.args(["--", "--nocapture", "one_effect"]);
            command.env("HAPAX_SIM_FROM", from.to_string());
            return succeed(command.env("HAPAX_SIM_SEEDS", seeds.to_string()));
        }
        let args = match seed {
            Some(seed) => vec!["--seed".to_owned(), seed.to_string()],
            None => ["--seeds", &seeds.to_string(), "--from", &from.to_string()]
                .map(str::to_owned)
                .to_vec(),
        };
        release(root, &["-p", "hapax-verify", "--bin", "hapax-sim"], &args)
    }
}

/// Longer than any patience of a relay or a consumer.
const FROZEN_S: &str = "60";

/// How many real processes to kill.
#[derive(Debug, Args)]
pub struct Crash {
    /// How many kills, on each store: of operations, of operations of several effects, of clients, of
    /// relays and consumers.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Which store operations and outboxes are on: `sqlite`, `postgres` or `both`.
    #[arg(long, default_value = "both")]
    store: String,
    /// Repeats the choices of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
}

impl Crash {
    /// Runs the crash harness, optimised.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let kills = self.kills.to_string();
        for which in [
            &["drive", "--store", &self.store, "--kills", &kills][..],
            &["steps", "--kills", &kills],
            &["client", "--kills", &kills],
            &["messaging", "--store", &self.store, "--kills", &kills, "--frozen-s", FROZEN_S],
        ] {
            let mut args: Vec<_> = which.iter().map(|&arg| arg.to_owned()).collect();
            args.extend(self.seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
            release(root, &["-p", "hapax-crash"], &args)?;
        }
        Ok(())
    }
}

/// How long the power is taken away.
#[derive(Debug, Args)]
pub struct Power {
    /// For how long workloads are recorded and judged, in seconds; each is judged once in any case.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// How many images of one recording are judged, at most; enough for every call of most workloads.
    #[arg(long, default_value_t = 20_000)]
    images: u64,
    /// Repeats the choices of an earlier run, but for how threads run: what was left is kept where the finding says.
    #[arg(long)]
    seed: Option<u64>,
    /// A workload to record: `opening`, `mixed`, `checkpoints`, `many-keys` or `processes`; all of them if
    /// none is named.
    #[arg(long)]
    workload: Vec<String>,
    /// With `Durability::Normal`: the last commits may be lost, but nothing may be damaged or half done.
    #[arg(long)]
    normal: bool,
}

impl Power {
    /// Runs the hunt, optimised.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let Self { seconds, images, seed, workload, normal } = self;
        let mut args = vec!["hunt".to_owned()];
        args.extend(["--seconds".to_owned(), seconds.to_string()]);
        args.extend(["--images".to_owned(), images.to_string()]);
        args.extend(seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
        args.extend(workload.iter().flat_map(|name| ["--workload".to_owned(), name.clone()]));
        args.extend(normal.then(|| "--normal".to_owned()));
        release(root, &["-p", "hapax-power"], &args)
    }
}

fn release(root: &Path, which: &[&str], args: &[String]) -> Result<(), TaskFailure> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    cargo(root, &[&["run", "--locked", "--release"], which, &["--"], &args].concat())
}
