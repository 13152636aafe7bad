//! Runs all tests: they are built once, and several test programs run side by side.
//!
//! Most of them wait for servers, so a machine with few cores is done much earlier than when they run one
//! after the other.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

use serde::Deserialize;

use super::{StepTimer, Tally, command, not_run, target_dir, versions::Versions};
use crate::TaskFailure;

/// Test programs that run at the same time, on a machine of this many cores or more.
const SIDE_BY_SIDE_MAX: usize = 3;

/// Builds and runs all tests, doc tests included, shows what they print and counts them.
pub(super) fn run(root: &Path) -> Result<Tally, TaskFailure> {
    let logs = logs()?;
    let versions = Versions::start()?;
    let mut programs = VecDeque::from(programs(root, &logs, &versions)?);
    // First, because compiling fills the time in which the others wait.
    programs.push_front(documentation(root, &logs));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let run = TestRun { waiting: Mutex::new(programs), done: Mutex::default() };
    thread::scope(|scope| {
        for _ in 0..cores.min(SIDE_BY_SIDE_MAX) {
            scope.spawn(|| run.work());
        }
    });
    let Outcomes { tally, failed } = run.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    for name in &failed {
        println!("\nFAILED: {name}");
    }
    tally.judge(failed.is_empty()).inspect_err(|_| {
        println!("\n{} passed, {} failed", tally.passed, tally.failed);
    })
}

/// One test program, or the doc tests.
struct TestProgram {
    name: String,
    command: Command,
    log: PathBuf,
}

struct TestRun {
    waiting: Mutex<VecDeque<TestProgram>>,
    done: Mutex<Outcomes>,
}

#[derive(Default)]
struct Outcomes {
    tally: Tally,
    failed: Vec<String>,
}

impl TestRun {
    fn work(&self) {
        while let Some(TestProgram { name, command, log }) = self.next() {
            let watch = StepTimer::start();
            let (passed, said) = match captured(command, &log) {
                Ok(ended) => ended,
                Err(error) => (false, format!("{name} could not be run: {error}\n")),
            };
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            println!("\n-- {name}: {:.1} s\n{said}", watch.seconds());
            said.lines().for_each(|line| done.tally.add(line));
            if !passed {
                done.failed.push(name);
            }
        }
    }

    fn next(&self) -> Option<TestProgram> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Whether it passed, and everything it printed.
///
/// Into a file: a server that a test left behind would keep a pipe open.
fn captured(mut command: Command, log: &Path) -> io::Result<(bool, String)> {
    let file = File::create(log)?;
    let status = command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file).status()?;
    let said = fs::read(log)?;
    Ok((status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// Builds all test programs; the largest come first, because those bring the most servers and take longest.
fn programs(
    root: &Path,
    logs: &Path,
    versions: &Versions,
) -> Result<Vec<TestProgram>, TaskFailure> {
    let mut build = command(root);
    build.args(["test", "--locked", "--workspace", "--all-features", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let built = build.output().map_err(not_run)?;
    if !built.status.success() {
        return Err(super::unsuccessful(&build, built.status));
    }
    let text = String::from_utf8_lossy(&built.stdout);
    let mut artifacts: Vec<_> = text.lines().filter_map(Artifact::of_test).collect();
    artifacts.sort_by_key(|(artifact, program)| {
        let bytes = fs::metadata(program).map_or(0, |file| file.len());
        (std::cmp::Reverse(bytes), artifact.manifest_path.clone())
    });
    let of_versions = artifacts.iter().filter(|(artifact, _)| artifact.target.kind == ["test"]);
    let of_versions: Vec<_> =
        of_versions.flat_map(|(artifact, program)| artifact.on(versions, program, logs)).collect();
    let programs =
        artifacts.into_iter().map(|(artifact, program)| artifact.program(&program, logs));
    Ok(programs.chain(of_versions).collect())
}

fn documentation(root: &Path, logs: &Path) -> TestProgram {
    let mut test = command(root);
    test.args(["test", "--locked", "--workspace", "--all-features", "--no-fail-fast", "--doc"]);
    let log = logs.join("doc.log");
    TestProgram { name: "doc tests".to_owned(), command: test, log }
}

/// Where the output of each program is kept until the next run.
fn logs() -> Result<PathBuf, TaskFailure> {
    let logs = target_dir()?.join("tests");
    let made = fs::create_dir_all(&logs);
    made.map_err(|error| TaskFailure::new(format!("{} cannot be made: {error}", logs.display())))?;
    Ok(logs)
}

/// What cargo says about something it has built.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: BuiltTarget,
    profile: BuiltProfile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct BuiltTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct BuiltProfile {
    test: bool,
}

impl Artifact {
    /// A test program, from a line of cargo's messages that is about one.
    fn of_test(line: &str) -> Option<(Self, PathBuf)> {
        let artifact: Self = serde_json::from_str(line).ok()?;
        let program = artifact.executable.clone().filter(|_| artifact.profile.test)?;
        Some((artifact, program))
    }

    /// The program where, and with what, cargo itself would run it.
    fn program(self, program: &Path, logs: &Path) -> TestProgram {
        let folder = self.package().file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{folder} {} {}", self.target.kind.join(" "), self.target.name);
        self.named(name, Command::new(program), logs)
    }

    /// The same on a server of each version, where its package has tests for that.
    fn on(&self, versions: &Versions, program: &Path, logs: &Path) -> Vec<TestProgram> {
        let commands = versions.commands(self.package(), program).into_iter();
        commands.map(|(name, command)| self.named(name, command, logs)).collect()
    }

    fn package(&self) -> &Path {
        self.manifest_path.parent().unwrap_or_else(|| Path::new("."))
    }

    fn named(&self, name: String, mut command: Command, logs: &Path) -> TestProgram {
        command.current_dir(self.package()).env("CARGO_MANIFEST_DIR", self.package());
        let log = logs.join(format!("{}.log", name.replace(' ', "-")));
        TestProgram { name, command, log }
    }
}
