//! An example with the packages it names, installed as its page says.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{Api, Language, example, leave_out};
use crate::{foreign::packages::Packages, text, world::free_address};

/// A copy of an example beside its packages, kept from run to run.
pub(super) struct Installed {
    language: Language,
    folder: PathBuf,
}

impl Installed {
    /// `None` if the language or its packages cannot be had, which has been told.
    pub(super) fn new(language: Language) -> Option<Self> {
        if !language.is_there() {
            return None;
        }
        let folder = packages(language).install();
        let folder = folder.map_err(|why| leave_out(language, &why)).ok()?;
        Some(Self { language, folder })
    }

    /// What the example creates its own tables with.
    pub(super) fn schema(&self) -> String {
        fs::read_to_string(self.folder.join("schema.sql")).unwrap()
    }

    /// Starts the API.
    pub(super) async fn start(&self, database: &str) -> Api {
        let address = free_address();
        let port = address.port().to_string();
        let mut command = match self.language {
            Language::Python => {
                self.command(&["-m", "uvicorn", "payments:app", "--log-level", "error", "--port"])
            }
            Language::Node => self.command(&["payments.mjs"]),
        };
        command.arg(port).env("DATABASE_URL", database).stdout(Stdio::null());
        Api::start(address, command).await
    }

    /// Runs the example's own tests to their end; what they said.
    pub(super) async fn test(&self, database: &str, kills: u32, seed: u32) -> String {
        let mut command = match self.language {
            Language::Python => self.command(&["test_payments.py"]),
            Language::Node => self.command(&["--test", "payments.test.mjs"]),
        };
        let said = tempfile::NamedTempFile::new().unwrap();
        let file = said.reopen().unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        command.env("KILLS", kills.to_string()).env("SEED", seed.to_string());
        let mut child = command.env("DATABASE_URL", database).spawn().unwrap();
        let ending = async {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    return status;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let ended = timeout(LIMIT + LIMIT_PER_KILL * kills, ending).await;
        if ended.is_err() {
            child.kill().unwrap();
        }
        let said = text(&fs::read(said.path()).unwrap());
        assert!(ended.is_ok_and(|status| status.success()), "{:?}: {said}", self.language);
        said
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = match self.language {
            Language::Python => Command::new(self.folder.join(".venv/bin/python")),
            Language::Node => Command::new("node"),
        };
        command.args(args).current_dir(&self.folder).stdin(Stdio::null());
        command
    }
}

const LIMIT: Duration = Duration::from_secs(240);
const LIMIT_PER_KILL: Duration = Duration::from_secs(10);

fn packages(language: Language) -> Packages {
    match language {
        Language::Python => Packages {
            name: "python",
            programs: example("python"),
            list: "requirements.txt",
            steps: &[
                &["python3", "-m", "venv", "--clear", ".venv"],
                &[".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt"],
            ],
        },
        Language::Node => Packages {
            name: "node",
            programs: example("node"),
            list: "package-lock.json",
            steps: &[&["npm", "ci", "--no-audit"]],
        },
    }
}
