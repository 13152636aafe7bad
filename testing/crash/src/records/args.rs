use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::ValueEnum;

use crate::{open::DurableAddress, place::DieAt};

/// What a victim is told to do.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordVictimArgs {
    /// Where its store is: `sqlite:PATH` or a PostgreSQL URL.
    #[arg(long)]
    pub store: DurableAddress,
    /// Where the journal and the upstream's books are.
    #[arg(long)]
    pub dir: PathBuf,
    /// The scope of its operations.
    #[arg(long)]
    pub scope: String,
    /// What its order of asking is drawn from.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How many operations there are.
    #[arg(long, default_value_t = 28)]
    pub keys: usize,
    /// How many callers ask at the same time, each for every operation.
    #[arg(long, default_value_t = 24)]
    pub callers: u64,
    /// Where it dies, as PLACE:NTH.
    #[arg(long)]
    pub die_at: Option<DieAt>,
    /// Goes on asking until it is killed or time is up, instead of until all is settled.
    #[arg(long)]
    pub linger: bool,
    /// Finishes operations that others left behind from their stored request.
    #[arg(long)]
    pub finish: bool,
    /// Its time.
    #[arg(long, default_value_t = 20_000)]
    pub limit_ms: u64,
    /// What it does wrong, to see whether that is noticed.
    #[arg(long)]
    pub broken: Option<RecordMistake>,
}

/// A mistake a victim can make, to see whether it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordMistake {
    /// Clients are told before the outcome is stored.
    AckBeforeSettle,
    /// What is in doubt is run again.
    RerunHeld,
    /// What could be asked for is run again without asking.
    ProbeBlind,
}

impl RecordVictimArgs {
    /// The command that starts a victim with these arguments.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("victim").arg("--dir").arg(&self.dir);
        let mut option = |name: &str, value: &dyn ToString| {
            command.arg(name).arg(value.to_string());
        };
        option("--store", &self.store);
        option("--scope", &self.scope);
        option("--seed", &self.seed);
        option("--keys", &self.keys);
        option("--callers", &self.callers);
        option("--limit-ms", &self.limit_ms);
        if let Some(die_at) = &self.die_at {
            option("--die-at", die_at);
        }
        if let Some(broken) = self.broken.and_then(|broken| broken.to_possible_value()) {
            option("--broken", &broken.get_name());
        }
        let flags = [("--linger", self.linger), ("--finish", self.finish)];
        command.args(flags.into_iter().filter_map(|(flag, set)| set.then_some(flag)));
        command
    }

    /// Its time.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms)
    }
}
