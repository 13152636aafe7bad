//! The project's own automation, as a library so that its checks can be tested.

#![expect(clippy::print_stdout, reason = "telling what was done is what this program is for")]

use std::path::Path;

use clap::{Parser, Subcommand};

pub mod bench;
pub mod bench_guard;
pub mod bench_peers;
mod bench_sdk;
pub mod chaos;
pub mod ci;
pub mod dist;
pub mod fuzz;
pub mod services;
pub mod site;
pub mod tidy;
pub mod trials;
pub mod upgrade;

mod failure;

pub use self::failure::TaskFailure;

/// What the project's automation can be asked to do.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own automation.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that must hold before a change is done, in order, up to the first failure.
    Ci(ci::Ci),
    /// The rules of the repository that no compiler checks.
    Tidy,
    /// Simulated histories of real engines: one seed, one run.
    Sim(trials::Sim),
    /// Real processes killed at every named place and at random.
    Crash(trials::Crash),
    /// The loss of power at every write and sync of an SQLite file.
    Power(trials::Power),
    /// Gateways killed at random, and exchanges with them cut at every byte.
    Chaos(chaos::Chaos),
    /// Gateways of the version before, replaced by this one's and beside them.
    Upgrade(upgrade::Upgrade),
    /// Bytes nobody thought of, for everything that reads what others wrote.
    Fuzz(fuzz::Fuzz),
    /// Hapax beside what one would use instead, measured on this machine.
    Bench(bench::Bench),
    /// Instructions of the hot paths, held against the committed figures.
    BenchGuard(bench_guard::BenchGuard),
    /// Other crates for the same job: what each does, and how fast.
    BenchPeers(bench_peers::BenchPeers),
    /// The documents as pages with a search.
    Site(site::Site),
    /// Everything that people install: programs, packages, an image, crates.
    Dist(dist::Dist),
    /// Real servers for tests, left running between commands.
    Services {
        #[command(subcommand)]
        action: services::Action,
    },
}

impl Args {
    /// Does what was asked, in the workspace at `root`.
    pub fn run(self, root: &Path) -> Result<(), TaskFailure> {
        match self.command {
            Command::Ci(ci) => ci.run(root),
            Command::Tidy => tidy::run(root),
            Command::Sim(sim) => sim.run(root),
            Command::Crash(crash) => crash.run(root),
            Command::Power(power) => power.run(root),
            Command::Chaos(chaos) => chaos.run(root),
            Command::Upgrade(upgrade) => upgrade.run(root),
            Command::Fuzz(fuzz) => fuzz.run(root),
            Command::Bench(bench) => bench.run(root),
            Command::BenchGuard(guard) => guard.run(root),
            Command::BenchPeers(peers) => peers.run(root),
            Command::Site(site) => site.run(root),
            Command::Dist(dist) => dist.run(root),
            Command::Services { action } => services::run(root, action),
        }
    }
}

/// The front page's example, run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct FrontPage;
