//! Runs a workload in a process of its own and keeps what it did to its files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use fastrand::Rng;
use tempfile::TempDir;

use crate::{
    disk::{DiskImage, DiskModel, Loss, Syncs},
    error::PowerError,
    log::{self, DiskCall, TOLD},
    work::Work,
};

/// The library that is loaded into the process, as source.
const RECORDER: &str = include_str!("recorder.c");
/// Memory that is a file system: what is written there is synced in no time.
const FAST: &str = "/dev/shm";

/// What a process did to the files of its directory.
#[derive(Debug)]
pub struct Recording {
    /// What was there before.
    pub before: DiskImage,
    /// What it did, in order.
    pub calls: Vec<DiskCall>,
}

/// The library, ready to be loaded into processes.
#[derive(Debug)]
pub struct Recorder {
    program: PathBuf,
    home: PathBuf,
    library: PathBuf,
}

impl Recorder {
    /// For processes of this program, with a directory for what it needs.
    pub fn new(program: &Path, home: &Path) -> Result<Self, PowerError> {
        let library = home.join("recorder.so");
        compile(home, &library)?;
        Ok(Self { program: program.to_owned(), home: home.to_owned(), library })
    }

    /// Does this work, and records it.
    pub fn record(&self, work: &Work) -> Result<Recording, PowerError> {
        fs::create_dir_all(&work.dir).map_err(PowerError::io("make a directory"))?;
        run(Command::new(&self.program).arg("fill").args(work.args()))?;
        let mut command = Command::new(&self.program);
        self.watch(command.arg("work").args(work.args()), &work.dir, "log")
    }

    /// Does this command of the program in this directory, and records it.
    pub fn record_command(&self, name: &str, dir: &Path) -> Result<Recording, PowerError> {
        let mut command = Command::new(&self.program);
        self.watch(command.arg(name).arg("--dir").arg(dir), dir, &format!("log-{name}"))
    }

    fn watch(&self, command: &mut Command, dir: &Path, log: &str) -> Result<Recording, PowerError> {
        let log = self.home.join(log);
        let before = read(dir)?;
        // A log is written on where it ends.
        fs::write(&log, "").map_err(PowerError::io("empty the log"))?;
        run(command
            .env("LD_PRELOAD", &self.library)
            .env("HAPAX_POWER_DIR", dir)
            .env("HAPAX_POWER_LOG", &log))?;
        let log = fs::read(&log).map_err(PowerError::io("read the log"))?;
        let recording = Recording { before, calls: log::read(log.into())? };
        recording.check(&read(dir)?)?;
        Ok(recording)
    }
}

impl Recording {
    /// Replayed in full, it must lead to the files that are there.
    fn check(&self, after: &DiskImage) -> Result<(), PowerError> {
        let mut disk = DiskModel::new(&self.before, Syncs::Honest);
        self.calls.iter().try_for_each(|call| disk.perform(call))?;
        let replayed = disk.after_power_loss(Loss::Nothing, &mut Rng::with_seed(0));
        let names = replayed.files.keys().chain(after.files.keys());
        let differs = |name: &&String| replayed.files.get(*name) != after.files.get(*name);
        match names.into_iter().find(differs) {
            Some(name) => Err(PowerError::Incomplete { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// A directory for files that need not last.
pub(crate) fn scratch() -> Result<TempDir, PowerError> {
    let fast = PathBuf::from(FAST);
    let made = if fast.is_dir() {
        tempfile::Builder::new().prefix("hapax-power-").tempdir_in(fast)
    } else {
        tempfile::Builder::new().prefix("hapax-power-").tempdir()
    };
    made.map_err(PowerError::io("make a directory"))
}

fn compile(home: &Path, library: &Path) -> Result<(), PowerError> {
    let source = home.join("recorder.c");
    fs::write(&source, RECORDER).map_err(PowerError::io("write the recorder"))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror"]);
    run(command.arg("-o").arg(library).arg(source).args(["-ldl", "-lpthread"]))
}

fn run(command: &mut Command) -> Result<(), PowerError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(PowerError::io(format!("run {program}")))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Err(PowerError::Failed { program, status: ended.status, said })
}

/// The files of a directory, but for what is not durable anyway.
fn read(dir: &Path) -> Result<DiskImage, PowerError> {
    let unreadable = || PowerError::io(format!("read {}", dir.display()));
    let mut image = DiskImage::default();
    for entry in fs::read_dir(dir).map_err(unreadable())? {
        let entry = entry.map_err(unreadable())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != TOLD && !name.ends_with("-shm") {
            image.files.insert(name, fs::read(entry.path()).map_err(unreadable())?);
        }
    }
    Ok(image)
}
