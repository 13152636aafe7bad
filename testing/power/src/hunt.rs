//! Takes the power away at many moments of a recording, and counts what that breaks.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt, fs, mem,
    path::{Path, PathBuf},
};

use fastrand::Rng;
use hapax_sqlite::Durability;

use crate::{
    disk::{DiskModel, Loss, Syncs},
    error::PowerError,
    expectation::Expectation,
    judge::{Judge, PowerViolation, lay_out},
    log::DiskCall,
    plan::{WorkPlan, Workload},
    recording::{Recorder, Recording, scratch},
    work::Work,
};

/// After so many findings in one recording there is enough to look at.
const FINDINGS_MAX: usize = 3;
/// The images every moment has.
const FIXED: [Loss; 2] = [Loss::Nothing, Loss::Everything];
/// How many more are drawn by chance.
const BY_CHANCE: usize = 2;

/// What to record, and how much of it to judge.
#[derive(Debug, Clone)]
pub struct PowerHunt {
    /// The program that does the work: this crate's.
    pub program: PathBuf,
    /// What it does.
    pub workload: Workload,
    /// What the plan and every choice are drawn from.
    pub seed: u64,
    /// How many images are judged, at most, but for those of a second loss.
    pub images: usize,
    /// At how many moments the power is lost again while the store is opened after it.
    pub again: usize,
    /// What the store is told to promise.
    pub durability: Durability,
    /// What it is held to.
    pub promise: Durability,
    /// What a sync is worth.
    pub syncs: Syncs,
}

/// A broken promise, and where to see it.
#[derive(Debug, Clone)]
pub struct PowerFinding {
    /// What was broken.
    pub violation: PowerViolation,
    /// After which call of the recording.
    pub call: usize,
    /// What was lost then.
    pub loss: Loss,
    /// Where the recording and the image are kept.
    pub dir: PathBuf,
}

/// What came of a hunt.
#[derive(Debug, Clone, Default)]
pub struct PowerReport {
    /// How many calls were recorded.
    pub calls: usize,
    /// How many of them were syncs.
    pub syncs: usize,
    /// At how many moments the power was taken away.
    pub moments: usize,
    /// At how many moments it was taken away once more, while the store was opened after that.
    pub moments_again: usize,
    /// How many different images were judged.
    pub images: usize,
    /// At how many moments each task was under way.
    pub under_way: BTreeMap<&'static str, usize>,
    /// What was broken.
    pub findings: Vec<PowerFinding>,
}

impl PowerHunt {
    /// Records and judges.
    pub fn run(&self) -> Result<PowerReport, PowerError> {
        let mut home = scratch()?;
        let path = fs::canonicalize(home.path()).map_err(PowerError::io("find a directory"))?;
        let work = Work {
            dir: path.join("files"),
            workload: self.workload,
            seed: self.seed,
            durability: self.durability,
            part: 0,
        };
        let recorder = Recorder::new(&self.program, &path)?;
        let recording = recorder.record(&work)?;
        let report = self.judge(&recorder, &recording, &path)?;
        home.disable_cleanup(!report.findings.is_empty());
        Ok(report)
    }

    fn judge(
        &self,
        recorder: &Recorder,
        recording: &Recording,
        home: &Path,
    ) -> Result<PowerReport, PowerError> {
        let plan = WorkPlan::draw(self.workload, self.seed)?;
        let moments = Moments::find(recording, &plan)?;
        let (judged, salt) = (home.join("judged"), moments.salt.clone());
        let judge = Judge::new(&judged, salt)?;
        let chosen = moments.choose(self.images, &mut Rng::with_seed(self.seed));
        let every = chosen.len().div_ceil(self.again.max(1));
        let mut disk = DiskModel::new(&recording.before, self.syncs);
        let mut expected = Expectation::new(&plan, self.promise);
        let mut trial = Trial { judge, home, seen: HashSet::new(), report: PowerReport::default() };
        for (at, call) in recording.calls.iter().enumerate() {
            disk.perform(call)?;
            expected.hear(call)?;
            trial.report.calls += 1;
            trial.report.syncs += usize::from(is_sync(call));
            if !chosen.contains(&at) {
                continue;
            }
            // Each moment has chances of its own, so that it can be looked at alone.
            let mut chance = Rng::with_seed(self.seed ^ (at as u64).rotate_left(32));
            trial.lose_power(&disk, &expected, at, &mut chance)?;
            let is_turn = self.again > 0 && trial.report.moments.is_multiple_of(every);
            if is_turn && expected.salt().is_some() {
                trial.lose_power_again(recorder, &disk, &expected, at, &mut chance)?;
            }
            if trial.report.findings.len() >= FINDINGS_MAX {
                break;
            }
        }
        Ok(trial.report)
    }
}

/// One recording on trial.
struct Trial<'h> {
    judge: Judge<'h>,
    home: &'h Path,
    /// Which images were judged, by what.
    seen: HashSet<(u64, usize)>,
    report: PowerReport,
}

impl Trial<'_> {
    fn lose_power(
        &mut self,
        disk: &DiskModel,
        expected: &Expectation<'_>,
        at: usize,
        chance: &mut Rng,
    ) -> Result<(), PowerError> {
        self.report.moments += 1;
        for name in expected.under_way() {
            *self.report.under_way.entry(name).or_default() += 1;
        }
        for loss in losses(chance) {
            self.lose(disk, loss, expected, at, chance)?;
        }
        Ok(())
    }

    /// Opens what is left after this moment, and takes the power away at every call of that.
    fn lose_power_again(
        &mut self,
        recorder: &Recorder,
        disk: &DiskModel,
        expected: &Expectation<'_>,
        at: usize,
        chance: &mut Rng,
    ) -> Result<(), PowerError> {
        let dir = self.home.join("again");
        let loss = losses(chance).pop().unwrap_or(Loss::Everything);
        let left = disk.after_power_loss(loss, chance);
        lay_out(&left, &dir)?;
        let opening = recorder.record_command("open", &dir)?;
        let mut disk = DiskModel::new(&left, Syncs::Honest);
        for call in &opening.calls {
            disk.perform(call)?;
            self.report.moments_again += 1;
            let by_chance = Loss::BY_CHANCE[chance.usize(..Loss::BY_CHANCE.len())];
            for loss in [Loss::Everything, by_chance] {
                self.lose(&disk, loss, expected, at, chance)?;
            }
        }
        Ok(())
    }

    fn lose(
        &mut self,
        disk: &DiskModel,
        loss: Loss,
        expected: &Expectation<'_>,
        at: usize,
        chance: &mut Rng,
    ) -> Result<(), PowerError> {
        let image = disk.after_power_loss(loss, chance);
        if !self.seen.insert((image.digest(), expected.heard())) {
            return Ok(());
        }
        self.report.images += 1;
        if let Some(violation) = self.judge.judge(&image, expected, chance)? {
            let dir = self.home.join(format!("image-{at}-{}", self.report.findings.len()));
            lay_out(&image, &dir)?;
            self.report.findings.push(PowerFinding { violation, call: at, loss, dir });
        }
        Ok(())
    }
}

/// The moments of a recording by what was going on.
struct Moments {
    /// By the call that was made last and the tasks that were under way.
    by_kind: BTreeMap<BTreeSet<String>, Vec<usize>>,
    salt: String,
}

impl Moments {
    fn find(recording: &Recording, plan: &WorkPlan) -> Result<Self, PowerError> {
        let mut disk = DiskModel::new(&recording.before, Syncs::Honest);
        let mut expected = Expectation::new(plan, Durability::Full);
        let mut by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (at, call) in recording.calls.iter().enumerate() {
            disk.perform(call)?;
            expected.hear(call)?;
            let opened = if expected.salt().is_some() { "opened" } else { "opening" };
            let mut kind = BTreeSet::from([opened.to_owned(), in_words(call, &disk)]);
            kind.extend(expected.under_way().into_iter().map(str::to_owned));
            by_kind.entry(kind).or_default().push(at);
        }
        let untold = || PowerError::Log("the store was not opened".to_owned());
        Ok(Self { by_kind, salt: expected.salt().ok_or_else(untold)?.to_owned() })
    }

    /// As many as make this many images at most: every call and every task at least once, and then every
    /// kind alike.
    fn choose(self, images: usize, chance: &mut Rng) -> HashSet<usize> {
        let count = images.div_ceil(FIXED.len() + BY_CHANCE);
        let mut kinds: Vec<_> = self.by_kind.into_iter().collect();
        chance.shuffle(&mut kinds);
        kinds.iter_mut().for_each(|(_, moments)| chance.shuffle(moments));
        let (mut chosen, mut covered) = (HashSet::new(), BTreeSet::new());
        for (kind, moments) in &mut kinds {
            if !kind.is_subset(&covered) {
                covered.append(kind);
                chosen.extend(moments.pop());
            }
        }
        while chosen.len() < count && !kinds.is_empty() {
            let next: Vec<_> = kinds.iter_mut().filter_map(|(_, moments)| moments.pop()).collect();
            chosen.extend(next.into_iter().take(count - chosen.len()));
            kinds.retain(|(_, moments)| !moments.is_empty());
        }
        chosen
    }
}

/// What may become of that which was not synced, at one moment.
pub(crate) fn losses(chance: &mut Rng) -> Vec<Loss> {
    let mut by_chance = Loss::BY_CHANCE;
    chance.shuffle(&mut by_chance);
    FIXED.into_iter().chain(by_chance.into_iter().take(BY_CHANCE)).collect()
}

fn in_words(call: &DiskCall, disk: &DiskModel) -> String {
    let of = |inode| disk.name_of(inode).unwrap_or("a file without a name").to_owned();
    match call {
        DiskCall::Opened { name, .. } => format!("open {name}"),
        DiskCall::Created { name, .. } => format!("create {name}"),
        DiskCall::Written { inode, .. } => format!("write {}", of(*inode)),
        DiskCall::Truncated { inode, .. } => format!("truncate {}", of(*inode)),
        DiskCall::Synced { inode } => format!("sync {}", of(*inode)),
        DiskCall::DirectorySynced => "sync the directory".to_owned(),
        DiskCall::Unlinked { name } => format!("unlink {name}"),
        DiskCall::Told(line) => line.split(' ').next().unwrap_or_default().to_owned(),
    }
}

pub(crate) fn is_sync(call: &DiskCall) -> bool {
    matches!(call, DiskCall::Synced { .. } | DiskCall::DirectorySynced)
}

impl PowerReport {
    /// Adds what another hunt came to.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.syncs += other.syncs;
        self.moments += other.moments;
        self.moments_again += other.moments_again;
        self.images += other.images;
        for (name, moments) in other.under_way {
            *self.under_way.entry(name).or_default() += moments;
        }
        self.findings.extend(other.findings);
    }
}

impl fmt::Display for PowerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, syncs, moments, moments_again, images, under_way, findings } = self;
        write!(f, "{images} images of {moments} moments of {calls} calls, {syncs} of them syncs")?;
        write!(f, ", and of {moments_again} moments of openings after it")?;
        let (mut under_way, mut between) = (under_way.iter(), "; under way: ");
        under_way.try_for_each(|(name, moments)| {
            write!(f, "{}{name} {moments}", mem::replace(&mut between, ", "))
        })?;
        findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl fmt::Display for PowerFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { violation, call, loss, dir } = self;
        let dir = dir.display();
        write!(f, "VIOLATION {violation}\n  after call {call}, with {loss:?} lost: {dir}")
    }
}
