//! The loss of power while a client keeps its journal: what it may have sent, it still knows.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use fastrand::Rng;
use hapax_client::journal::{
    Begin, EntryState, Journal, JournalCredentials, JournalEncryption, JournalEntry,
    JournalOptions, JournalRequest, LocalMasterKey, Name, OpenError, OwnerWriteResult,
    PursuitAdmission, PursuitEnd,
};
use hapax_core::{Key, OneLine, Outcome};
use tokio::runtime::Runtime;

use crate::{
    disk::{DiskImage, DiskModel, Syncs},
    error::PowerError,
    hunt::{PowerFinding, PowerReport, is_sync, losses},
    judge::{PowerViolation, lay_out},
    log::DiskCall,
    plan::outcome,
    recording::{Recorder, scratch},
    work::{Told, runtime},
};

const JOURNAL_FILE: &str = "client.db";
const THREADS: usize = 3;
const OPERATIONS: usize = 24;
/// Longer than anybody waits here.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Takes the power away at every call of a client's journal.
#[derive(Debug, Clone)]
pub struct JournalHunt {
    /// The program that keeps it: this crate's.
    pub program: PathBuf,
    /// What every choice is drawn from.
    pub seed: u64,
    /// What a sync is worth.
    pub syncs: Syncs,
    /// Whether the journal is encrypted: begun clear, and opened with a master key for the second half.
    pub encrypted: bool,
}

impl JournalHunt {
    /// Records and judges.
    pub fn run(&self) -> Result<PowerReport, PowerError> {
        let mut home = scratch()?;
        let path = fs::canonicalize(home.path()).map_err(PowerError::io("find a directory"))?;
        let (dir, judged) = (path.join("files"), path.join("judged"));
        lay_out(&DiskImage::default(), &dir)?;
        let command = if self.encrypted { "encrypted-journal" } else { "journal" };
        let recording = Recorder::new(&self.program, &path)?.record_command(command, &dir)?;
        let judge = JournalJudge { dir: judged, runtime: runtime()?, encrypted: self.encrypted };
        let mut disk = DiskModel::new(&recording.before, self.syncs);
        let (mut heard, mut seen) = (Heard::default(), HashSet::new());
        let mut report = PowerReport { calls: recording.calls.len(), ..PowerReport::default() };
        for (at, call) in recording.calls.iter().enumerate() {
            disk.perform(call)?;
            heard.hear(call)?;
            report.syncs += usize::from(is_sync(call));
            report.moments += 1;
            let mut chance = Rng::with_seed(self.seed ^ (at as u64).rotate_left(32));
            for loss in losses(&mut chance) {
                let image = disk.after_power_loss(loss, &mut chance);
                if !seen.insert((image.digest(), heard.done.len())) {
                    continue;
                }
                report.images += 1;
                lay_out(&image, &judge.dir)?;
                if let Err(violation) = judge.check(&heard) {
                    let dir = path.join(format!("image-{at}"));
                    lay_out(&image, &dir)?;
                    report.findings.push(PowerFinding { violation, call: at, loss, dir });
                    home.disable_cleanup(true);
                    return Ok(report);
                }
            }
        }
        Ok(report)
    }
}

/// Begins operations and ends most of them, by several threads; of an encrypted journal the first half
/// while it is not yet.
pub fn work(dir: &Path, encrypted: bool) -> Result<(), PowerError> {
    let told = Told::open(dir)?;
    let half = if encrypted { OPERATIONS / 2 } else { 0 };
    for (numbers, encrypted) in [(0..half, false), (half..OPERATIONS, encrypted)] {
        let journal = open(dir, encrypted).map_err(PowerError::refused("open the journal"))?;
        let run = |thread: usize| {
            let runtime = runtime()?;
            numbers.clone().skip(thread).step_by(THREADS).try_for_each(|number| {
                let tell = |task, word: &str| told.tell(&format!("{word} {task}"));
                pursue(&journal, &runtime, number, &tell)
            })
        };
        thread::scope(|scope| {
            let run = &run;
            let running: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
            running.into_iter().try_for_each(|thread| {
                let panicked = |_| PowerError::Log("a thread of the workload panicked".to_owned());
                thread.join().map_err(panicked)?
            })
        })?;
    }
    Ok(())
}

fn open(dir: &Path, encrypted: bool) -> Result<Journal, OpenError> {
    let key = || JournalEncryption::new(LocalMasterKey::from_bytes(&[7; 32]));
    let options = JournalOptions { encryption: encrypted.then(key), ..JournalOptions::default() };
    Journal::open(dir.join(JOURNAL_FILE), options)
}

/// Begins an operation, which is task `2 * number`, and ends it, which is the task after that.
fn pursue(
    journal: &Journal,
    runtime: &Runtime,
    number: usize,
    tell: &dyn Fn(usize, &str) -> Result<(), PowerError>,
) -> Result<(), PowerError> {
    let (begin, end) = (2 * number, 2 * number + 1);
    let operation = JournalledOperation::numbered(number)?;
    tell(begin, "begin")?;
    let asked = runtime.block_on(journal.begin(operation.begin()));
    let PursuitAdmission::Granted(grant) = asked.map_err(PowerError::refused("begin"))? else {
        return Err(PowerError::Unplanned { task: begin, what: "it was not granted".to_owned() });
    };
    tell(begin, "done")?;
    if number % 4 == 3 {
        return Ok(());
    }
    tell(end, "begin")?;
    let done = PursuitEnd::Done(operation.answer);
    let settled = runtime.block_on(journal.settle(&grant.hold, 1, done));
    match settled.map_err(PowerError::refused("end an operation"))? {
        OwnerWriteResult::Done => tell(end, "done"),
        lost @ OwnerWriteResult::Lost { .. } => {
            Err(PowerError::Unplanned { task: end, what: format!("{lost:?}") })
        }
    }
}

/// One operation, the same wherever it is spoken of.
struct JournalledOperation {
    name: Name,
    key: Key,
    request: JournalRequest,
    answer: Outcome,
}

impl JournalledOperation {
    fn numbered(number: usize) -> Result<Self, PowerError> {
        let refused = || PowerError::refused("make an operation");
        let body = format!("order {number} ").repeat(40 * (number % 8) + 1);
        let request = JournalRequest::new(
            http::Method::POST,
            http::Uri::from_static("https://api.example.com/charges"),
            http::HeaderMap::new(),
            body.into(),
            JournalCredentials::Withhold,
        );
        Ok(Self {
            name: Name::parse(format!("charge-{number}"))
                .map_err(PowerError::refused("name an operation"))?,
            key: Key::parse(format!("key-{number}")).map_err(PowerError::refused("make a key"))?,
            request: request.map_err(refused())?,
            answer: outcome(format!("receipt {number} ").repeat(100 * (number % 5) + 1))?,
        })
    }

    fn begin(&self) -> Begin {
        Begin::new(self.name.clone(), self.key.clone(), self.request.clone(), DEADLINE)
    }

    /// How far it has come: not begun, begun, done; `None` if this is another one's entry.
    fn stage(&self, entry: Option<&JournalEntry>) -> Option<usize> {
        let Some(entry) = entry else { return Some(0) };
        if entry.key != self.key || entry.request != self.request || entry.name != self.name {
            return None;
        }
        match &entry.state {
            EntryState::Pending { .. } => Some(1),
            EntryState::Done { answer, .. } => (*answer == self.answer).then_some(2),
            EntryState::Refused { .. } | EntryState::Unknown { .. } | EntryState::GaveUp { .. } => {
                None
            }
        }
    }
}

/// What was told so far.
#[derive(Debug, Default)]
struct Heard {
    begun: BTreeSet<usize>,
    done: BTreeSet<usize>,
}

impl Heard {
    fn hear(&mut self, call: &DiskCall) -> Result<(), PowerError> {
        let DiskCall::Told(line) = call else { return Ok(()) };
        let unheard = || PowerError::Log(format!("nobody tells `{line}`"));
        let (word, task) = line.split_once(' ').ok_or_else(unheard)?;
        let task = task.parse().map_err(|_| unheard())?;
        match word {
            "begin" => self.begun.insert(task),
            "done" => self.done.insert(task),
            _ => return Err(unheard()),
        };
        Ok(())
    }

    /// How far an operation has come at least, and at most.
    fn stages(&self, number: usize) -> (usize, usize) {
        let tasks = 2 * number..2 * number + 2;
        (self.done.range(tasks.clone()).count(), self.begun.range(tasks).count())
    }
}

struct JournalJudge {
    dir: PathBuf,
    runtime: Runtime,
    encrypted: bool,
}

impl JournalJudge {
    fn check(&self, heard: &Heard) -> Result<(), PowerViolation> {
        let wrong = |error: PowerError| PowerViolation::Journal(OneLine::of(&error).to_string());
        let journal = self.open()?;
        for number in 0..OPERATIONS {
            let operation = JournalledOperation::numbered(number).map_err(wrong)?;
            let entry = self.find(&journal, &operation.name)?;
            let (least, most) = heard.stages(number);
            let stage = operation.stage(entry.as_ref());
            if !stage.is_some_and(|stage| (least..=most).contains(&stage)) {
                let found = format!("{:?}: {entry:?}, not {least} to {most}", operation.name);
                return Err(PowerViolation::Journal(found));
            }
        }
        let newcomer = JournalledOperation::numbered(OPERATIONS).map_err(wrong)?;
        let stuck = |error: PowerError| PowerViolation::Stuck(OneLine::of(&error).to_string());
        pursue(&journal, &self.runtime, OPERATIONS, &|_, _| Ok(())).map_err(stuck)?;
        drop(journal);
        let entry = self.find(&self.open()?, &newcomer.name)?;
        match newcomer.stage(entry.as_ref()) {
            Some(2) => Ok(()),
            other => Err(PowerViolation::Stuck(format!("what came after is at {other:?}"))),
        }
    }

    fn open(&self) -> Result<Journal, PowerViolation> {
        let opened = open(&self.dir, self.encrypted);
        opened.map_err(|error| PowerViolation::Unopened(OneLine::of(&error).to_string()))
    }

    fn find(&self, journal: &Journal, name: &Name) -> Result<Option<JournalEntry>, PowerViolation> {
        self.runtime.block_on(journal.find(name)).map_err(|error| PowerViolation::Unreadable {
            what: name.as_str().to_owned(),
            error: OneLine::of(&error).to_string(),
        })
    }
}
