//! `cargo xtask chaos`: gateways killed and exchanges cut, longer than `ci` has time for.

use std::path::Path;

use clap::Args;
use hapax_services::roster::Service;

use crate::{
    TaskFailure,
    ci::{command, succeed, with_services},
};

/// Each store with each recovery is killed alike.
const TRIALS: u64 = 6;

/// How many gateways to kill.
#[derive(Debug, Args)]
pub struct Chaos {
    /// How many kills, over all stores and recoveries.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    kills: u64,
    /// Repeats the choices of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
}

impl Chaos {
    /// Runs the tests of wrong answers, cuts, kills and fleets in their long form.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let mut command = command(root);
        command.args(["test", "--locked", "-p", "hapax-cli", "--test", "it", "--"]);
        command.args(["truth::", "cuts::", "kills::", "fleet::", "--nocapture"]);
        command.env("HAPAX_CHAOS_KILLS", self.kills.div_ceil(TRIALS).to_string());
        command.env("HAPAX_CHAOS_EVERY_BYTE", "1");
        if let Some(seed) = self.seed {
            command.env("HAPAX_CHAOS_SEED", seed.to_string());
        }
        with_services(root, &[Service::Postgres], || succeed(&mut command))
    }
}
