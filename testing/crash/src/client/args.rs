use std::{
    path::{Path, PathBuf},
    process::Command,
};

use clap::ValueEnum;
use hapax_client::journal::{JournalEncryption, JournalOptions, LocalMasterKey};

use crate::place::DieAt;

const MASTER_KEY: [u8; 32] = [7; 32];

/// What a victim is told to do.
#[derive(Debug, Clone, clap::Args)]
pub struct ClientVictimArgs {
    /// Where its journal is, and where it writes what its callers were told.
    #[arg(long)]
    pub dir: PathBuf,
    /// Where operations are sent.
    #[arg(long)]
    pub url: String,
    /// What it does with them.
    #[arg(long, value_enum, default_value_t = VictimTask::Send)]
    pub task: VictimTask,
    /// How many operations there are.
    #[arg(long, default_value_t = 6)]
    pub operations: usize,
    /// What its patience is drawn from.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Where it dies, as PLACE:NTH.
    #[arg(long)]
    pub die_at: Option<DieAt>,
    /// Opens its journal with a master key.
    #[arg(long)]
    pub encrypted: bool,
    /// Keeps its keys in memory alone, to see whether that is noticed.
    #[arg(long)]
    pub forgetful: bool,
}

/// What a victim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VictimTask {
    /// Sends every operation, and finishes what others have left behind meanwhile.
    Send,
    /// Finishes what is pending, and nothing else.
    Resume,
    /// Asks again for what is unknown or was given up.
    AskAgain,
}

impl ClientVictimArgs {
    /// The command that starts a victim with these arguments.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("client-victim").arg("--dir").arg(&self.dir).arg("--url").arg(&self.url);
        let task = match self.task {
            VictimTask::Send => "send",
            VictimTask::Resume => "resume",
            VictimTask::AskAgain => "ask-again",
        };
        command.args(["--task", task]);
        command.arg("--operations").arg(self.operations.to_string());
        command.arg("--seed").arg(self.seed.to_string());
        if let Some(die_at) = &self.die_at {
            command.arg("--die-at").arg(die_at.to_string());
        }
        if self.encrypted {
            command.arg("--encrypted");
        }
        if self.forgetful {
            command.arg("--forgetful");
        }
        command
    }

    /// How the journal is opened.
    pub fn options(&self) -> JournalOptions {
        let key = || JournalEncryption::new(LocalMasterKey::from_bytes(&MASTER_KEY));
        JournalOptions { encryption: self.encrypted.then(key), ..JournalOptions::default() }
    }

    /// Where the journal is.
    pub fn journal(&self) -> PathBuf {
        self.dir.join("client.db")
    }
}
