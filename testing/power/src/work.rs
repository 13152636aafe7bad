//! The process whose calls are recorded: does what is planned, and tells before and after each task.

use std::{
    env,
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
};

use hapax_core::{Salt, Store as _, Timestamp, store::Written};
use hapax_sqlite::{Clock, Durability, OnceRequest, Options, Store, once};
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};

use crate::{
    error::PowerError,
    log::TOLD,
    plan::{OnceTask, PlannedPhase, PlannedTask, TaskAction, WorkPlan, Workload, fingerprint},
};

/// The file a store is in.
pub const STORE_FILE: &str = "hapax.db";
/// The table that effects are in, beside the tables of the store.
const EFFECTS: &str = "CREATE TABLE IF NOT EXISTS effects (key TEXT PRIMARY KEY)";

/// How many records one call of a purge may remove.
const PURGED_AT_ONCE: usize = 500;

/// What to do, and where.
#[derive(Debug, Clone)]
pub struct Work {
    /// The directory all files are in.
    pub dir: PathBuf,
    /// What is done.
    pub workload: Workload,
    /// What its plan is drawn from.
    pub seed: u64,
    /// What the store promises.
    pub durability: Durability,
    /// Which of the processes this is, counted from zero.
    pub part: usize,
}

/// Opens the store in this directory and closes it, as a process does that comes after the loss of power.
pub fn open(dir: &Path) -> Result<(), PowerError> {
    let opened = Store::open(dir.join(STORE_FILE), Options::default());
    opened.map_err(PowerError::refused("open the store")).map(drop)
}

impl Work {
    /// Fills the store with what is there before the workload begins.
    pub fn fill(&self) -> Result<(), PowerError> {
        let plan = WorkPlan::draw(self.workload, self.seed)?;
        if plan.filling.is_empty() {
            return Ok(());
        }
        let worker = Worker::new(self.clone())?;
        let store = worker.open()?;
        let runtime = runtime()?;
        for task in &plan.filling {
            worker.set_clock(task.now);
            worker.perform(task, &store, &runtime)?;
        }
        Ok(())
    }

    /// Does the workload.
    pub fn run(&self) -> Result<(), PowerError> {
        let plan = WorkPlan::draw(self.workload, self.seed)?;
        let others = if self.part == 0 { self.start_others()? } else { Vec::new() };
        let worker = Worker::new(self.clone())?;
        for phase in &plan.phases {
            worker.set_clock(phase.now);
            // Each phase closes the file and opens it again.
            let store = worker.open()?;
            worker.told.tell(&format!("opened {}", hex(store.salt())))?;
            worker.connect()?.execute_batch(EFFECTS).map_err(of_sqlite("make a table"))?;
            worker.run_phase(phase, &store)?;
        }
        for mut other in others {
            let status = other.wait().map_err(PowerError::io("wait for a process"))?;
            if !status.success() {
                let (program, said) = ("another process".to_owned(), String::new());
                return Err(PowerError::Failed { program, status, said });
            }
        }
        Ok(())
    }

    /// How a process is told to do this.
    pub(crate) fn args(&self) -> Vec<String> {
        let mut args = vec!["--dir".to_owned(), self.dir.display().to_string()];
        args.extend(["--workload".to_owned(), self.workload.to_string()]);
        args.extend(["--seed".to_owned(), self.seed.to_string()]);
        args.extend(["--part".to_owned(), self.part.to_string()]);
        args.extend((self.durability == Durability::Normal).then(|| "--normal".to_owned()));
        args
    }

    fn start_others(&self) -> Result<Vec<Child>, PowerError> {
        let program = env::current_exe().map_err(PowerError::io("find this program"))?;
        let start = |part| {
            let args = Self { part, ..self.clone() }.args();
            let started = Command::new(&program).arg("work").args(args).spawn();
            started.map_err(PowerError::io("start another process"))
        };
        (1..self.workload.processes()).map(start).collect()
    }
}

struct Worker {
    work: Work,
    clock: Arc<AtomicI64>,
    told: Told,
}

impl Worker {
    fn new(work: Work) -> Result<Self, PowerError> {
        let told = Told::open(&work.dir)?;
        Ok(Self { work, clock: Arc::default(), told })
    }

    fn set_clock(&self, now: Timestamp) {
        self.clock.store(now.as_micros(), Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let clock = Arc::clone(&self.clock);
        Clock::new(move || Timestamp::from_micros(clock.load(Ordering::SeqCst)))
    }

    fn open(&self) -> Result<Store, PowerError> {
        let options =
            Options { durability: self.work.durability, clock: self.clock(), ..Options::default() };
        let opened = Store::open(self.path(), options);
        opened.map_err(PowerError::refused("open the store"))
    }

    /// A connection as the program has it whose file the records are kept in.
    fn connect(&self) -> Result<Connection, PowerError> {
        let connection = Connection::open(self.path()).map_err(of_sqlite("open the file"))?;
        let synchronous = match self.work.durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        let set = connection.pragma_update(None, "synchronous", synchronous);
        set.map_err(of_sqlite("set how commits are synced"))?;
        Ok(connection)
    }

    fn path(&self) -> PathBuf {
        self.work.dir.join(STORE_FILE)
    }

    fn run_phase(&self, phase: &PlannedPhase, store: &Store) -> Result<(), PowerError> {
        let Work { part, workload, .. } = self.work;
        let own = phase.threads.iter().skip(part).step_by(workload.processes());
        thread::scope(|scope| {
            let running: Vec<_> =
                own.map(|tasks| scope.spawn(|| self.run_thread(tasks, store))).collect();
            running.into_iter().try_for_each(|thread| {
                let panicked = |_| PowerError::Log("a thread of the workload panicked".to_owned());
                thread.join().map_err(panicked)?
            })
        })
    }

    fn run_thread(&self, tasks: &[PlannedTask], store: &Store) -> Result<(), PowerError> {
        let runtime = runtime()?;
        for task in tasks {
            self.told.tell(&format!("begin {}", task.number))?;
            self.perform(task, store, &runtime)?;
            self.told.tell(&format!("done {}", task.number))?;
        }
        Ok(())
    }

    fn perform(
        &self,
        task: &PlannedTask,
        store: &Store,
        runtime: &Runtime,
    ) -> Result<(), PowerError> {
        let unplanned = |what| PowerError::Unplanned { task: task.number, what };
        let failed = PowerError::refused(format!("do task {}", task.number));
        match &task.action {
            TaskAction::Commit(batch) => {
                for answer in runtime.block_on(store.commit(batch.clone())) {
                    match answer {
                        Ok(Written::Done { .. }) => {}
                        other => return Err(unplanned(format!("{other:?}"))),
                    }
                }
            }
            TaskAction::Withdraw(attempt) => {
                if !runtime.block_on(store.withdraw(*attempt)).map_err(failed)? {
                    return Err(unplanned("it was not withdrawn".to_owned()));
                }
            }
            TaskAction::Note(note) => {
                runtime.block_on(store.note(note.clone())).map_err(failed)?;
            }
            TaskAction::Purge => loop {
                let purged = runtime.block_on(store.purge(PURGED_AT_ONCE));
                let purged = purged.map_err(PowerError::refused("purge"))?;
                if purged.total() == 0 {
                    break;
                }
            },
            TaskAction::Once(task) => self.once(task)?,
            TaskAction::Checkpoint(mode) => {
                let sql = format!("PRAGMA wal_checkpoint({mode})");
                let checkpoint = self.connect()?.query_row(&sql, [], |_| Ok(()));
                checkpoint.map_err(of_sqlite("copy the log into the file"))?;
            }
        }
        Ok(())
    }

    fn once(&self, task: &OnceTask) -> Result<(), PowerError> {
        let mut connection = self.connect()?;
        let request = OnceRequest {
            clock: self.clock(),
            policy: OnceTask::policy(),
            ..OnceRequest::new(task.operation.clone(), fingerprint())
        };
        let key = task.operation.key().as_str();
        let answered = once(&mut connection, &request, |transaction| {
            transaction.execute("INSERT INTO effects (key) VALUES (?1)", [key])?;
            Ok::<_, rusqlite::Error>(task.answer.clone())
        });
        answered.map_err(PowerError::refused("run an operation once")).map(drop)
    }
}

/// The file for what is told.
#[derive(Debug)]
pub(crate) struct Told(File);

impl Told {
    pub(crate) fn open(dir: &Path) -> Result<Self, PowerError> {
        let file = OpenOptions::new().create(true).append(true).open(dir.join(TOLD));
        file.map(Self).map_err(PowerError::io("open the file for what is told"))
    }

    /// In one write, so that it is told at one moment between two calls.
    pub(crate) fn tell(&self, line: &str) -> Result<(), PowerError> {
        (&self.0).write_all(format!("{line}\n").as_bytes()).map_err(PowerError::io("tell"))
    }
}

pub(crate) fn runtime() -> Result<Runtime, PowerError> {
    Builder::new_current_thread().build().map_err(PowerError::io("start a runtime"))
}

fn of_sqlite(action: &str) -> impl FnOnce(rusqlite::Error) -> PowerError {
    PowerError::refused(action)
}

pub(crate) fn hex(salt: Salt) -> String {
    salt.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
