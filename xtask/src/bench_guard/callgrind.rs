//! Counts the instructions of a path, by callgrind.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::figures::InstructionCount;
use crate::TaskFailure;

/// The function of the program inside which instructions are counted.
const COUNTED: &str = "*measure::counted*";
/// Names of functions that hash.
const HASHING: &str = "sha2::";

/// The program that runs a path by its name.
#[derive(Debug, Clone)]
pub struct Program {
    file: PathBuf,
    profiles: PathBuf,
}

/// One path, as the program lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPath {
    /// Its name.
    pub name: String,
    /// How often it is run.
    pub rounds: u64,
}

impl Program {
    /// The program that cargo built under the profile `guard`, which has a folder beside ours.
    pub fn built() -> Result<Self, TaskFailure> {
        let own = env::current_exe().map_err(|error| unusable(&error))?;
        let target = own.ancestors().nth(2).unwrap_or_else(|| Path::new("."));
        let folder = target.join("guard");
        let profiles = folder.join("callgrind");
        fs::create_dir_all(&profiles).map_err(|error| unusable(&error))?;
        Ok(Self { file: folder.join("hapax-bench-guard"), profiles })
    }

    /// Where the profiles are kept, for those who want to know more.
    pub fn profiles(&self) -> impl std::fmt::Display {
        self.profiles.display()
    }

    /// The paths it can run.
    pub fn paths(&self) -> Result<Vec<ListedPath>, TaskFailure> {
        let listed = output(&mut Command::new(&self.file))?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let paths = text.lines().map(|line| {
            let (name, rounds) = line.split_once(' ')?;
            Some(ListedPath { name: name.to_owned(), rounds: rounds.parse().ok()? })
        });
        paths.collect::<Option<_>>().ok_or_else(|| TaskFailure::new(format!("no list: {text}")))
    }

    /// The instructions of one round of a path.
    pub fn count(&self, path: &ListedPath) -> Result<InstructionCount, TaskFailure> {
        let profile = self.profiles.join(format!("{}.out", path.name));
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--tool=callgrind").arg(format!("--toggle-collect={COUNTED}"));
        valgrind.args(["--compress-strings=no", "--compress-pos=no"]);
        valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
        valgrind.arg(&self.file).arg(&path.name);
        // Nothing of the caller's environment reaches the program or its C library.
        let search = env::var_os("PATH").unwrap_or_default();
        output(valgrind.env_clear().env("PATH", search))?;
        let text = fs::read_to_string(&profile).map_err(|error| unusable(&error))?;
        let InstructionCount { instructions, hashing } = read(&text);
        if instructions == 0 {
            return Err(TaskFailure::new(format!("nothing of {} was counted", path.name)));
        }
        let rounds = path.rounds.max(1);
        Ok(InstructionCount { instructions: instructions / rounds, hashing: hashing / rounds })
    }
}

/// The instructions in a profile: the cost of each line under its function, without what it calls.
pub fn read(profile: &str) -> InstructionCount {
    let mut count = InstructionCount::default();
    let (mut hashes, mut is_of_a_call) = (false, false);
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            hashes = function.contains(HASHING);
        } else if line.starts_with("calls=") {
            is_of_a_call = true;
        } else if let Some(cost) = cost(line)
            && !std::mem::take(&mut is_of_a_call)
        {
            if hashes {
                count.hashing += cost;
            } else {
                count.instructions += cost;
            }
        }
    }
    count
}

/// The cost in a line that is a position and a cost, and nothing else.
fn cost(line: &str) -> Option<u64> {
    let (position, cost) = line.split_once(' ')?;
    position.parse::<u64>().ok()?;
    cost.parse().ok()
}

fn output(command: &mut Command) -> Result<Output, TaskFailure> {
    let output = command.output().map_err(|error| unusable(&error))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TaskFailure::new(format!("a path cannot be run ({}):\n{}", output.status, said.trim())))
}

fn unusable(error: &io::Error) -> TaskFailure {
    TaskFailure::new(format!("the paths cannot be run: {error}"))
}
