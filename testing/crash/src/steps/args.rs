use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{open::DurableAddress, place::DieAt};

/// What a victim is told to do.
#[derive(Debug, Clone, clap::Args)]
pub struct StepsVictimArgs {
    /// Where its store is: `sqlite:PATH` or a PostgreSQL URL.
    #[arg(long)]
    pub store: DurableAddress,
    /// Where the books are.
    #[arg(long)]
    pub dir: PathBuf,
    /// The scope of its operations.
    #[arg(long)]
    pub scope: String,
    /// How many operations there are.
    #[arg(long, default_value_t = 6)]
    pub keys: usize,
    /// Where it dies, as PLACE:NTH.
    #[arg(long)]
    pub die_at: Option<DieAt>,
    /// Repeats what it could ask for, to see whether that is noticed.
    #[arg(long)]
    pub never_probe: bool,
}

impl StepsVictimArgs {
    /// The command that starts a victim with these arguments.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("steps-victim").arg("--dir").arg(&self.dir);
        command.arg("--store").arg(self.store.to_string()).arg("--scope").arg(&self.scope);
        command.arg("--keys").arg(self.keys.to_string());
        if let Some(die_at) = &self.die_at {
            command.arg("--die-at").arg(die_at.to_string());
        }
        if self.never_probe {
            command.arg("--never-probe");
        }
        command
    }
}
