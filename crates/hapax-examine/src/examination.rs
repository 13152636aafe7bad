//! What is examined, and how far.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{
    ApiUnderTest, Control, EffectOracle, ExaminationMemory, Examiner, Hooks, KeySyntax,
    LearnedConduct, OracleLevel, PROBES, Probe, ProbeInterruption, ProbeLog, ProbeNeed,
    ProbeRecord, ProbeVerdict, VendorRefusals, Wire, controls::control, log::LoggedProbe,
};

/// Everything that an examination needs.
#[derive(Debug)]
pub struct Examination {
    /// What is examined.
    pub api: ApiUnderTest,
    /// Who counts effects, if anybody does.
    pub oracle: Option<Arc<dyn EffectOracle>>,
    /// What can be done to the server.
    pub hooks: Hooks,
    /// What its makers say it does.
    pub declared: DeclaredConduct,
    /// How far it goes.
    pub bounds: ExaminationBounds,
    /// Which probes; all if empty.
    pub only: Vec<&'static Probe>,
    /// By which it can be repeated.
    pub seed: u64,
    /// What sends bytes.
    pub wire: Wire,
    /// What the run that this one resumes had to remember; nothing if it resumes none.
    pub earlier: ExaminationMemory,
    /// The time of day at which it begins.
    pub now: SystemTime,
}

/// What the makers of an API say it does, where more than one thing is right.
#[derive(Debug, Clone, Default)]
pub struct DeclaredConduct {
    /// Whether a refused request (4xx) keeps its key. Unknown: either is right, if it is the same every time.
    pub refusals_kept: Option<bool>,
    /// Whether a 5xx is stored and replayed.
    pub errors_kept: Option<bool>,
    /// Whether requests without a key are refused.
    pub key_required: Option<bool>,
    /// How long keys are kept.
    pub retention: Option<Duration>,
    /// How it refuses what is about keys, where a vendor's clients are to understand it.
    pub refusals: Option<VendorRefusals>,
}

/// How far an examination goes.
#[derive(Debug, Clone)]
pub struct ExaminationBounds {
    /// Most operations that are begun.
    pub effects_max: u32,
    /// How many duplicates come at once, in turn.
    pub racers: Vec<usize>,
    /// Trials of a race, for each number of duplicates.
    pub race_trials: u32,
    /// Within which time a key must be free or answered again.
    pub recovery: Duration,
    /// The longest that an answer is waited for.
    pub answer: Duration,
    /// Keys that V22 uses before it asks for the first one again.
    pub keys_between: u32,
}

impl Default for ExaminationBounds {
    fn default() -> Self {
        Self {
            effects_max: 200,
            racers: vec![2, 8, 50],
            race_trials: 10,
            recovery: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            keys_between: 100,
        }
    }
}

/// What happens while an examination runs.
#[derive(Debug)]
pub enum ExaminationEvent<'a> {
    /// A control was looked at.
    Controlled(&'a Control),
    /// A probe begins.
    Begins(&'static Probe),
    /// A probe ended.
    Ended(&'a ProbeRecord),
}

/// All that came of an examination.
#[derive(Debug, Clone)]
pub struct ExaminationRecord {
    /// How effects were counted.
    pub oracle: OracleLevel,
    /// In words: how they were counted.
    pub oracle_text: String,
    /// What was found out first.
    pub controls: Vec<Control>,
    /// What was learned by it; nothing if the API was not graded.
    pub learned: Option<LearnedConduct>,
    /// The probes that were run, in order.
    pub probes: Vec<ProbeRecord>,
    /// How many operations were begun.
    pub operations: u32,
    /// What a run that resumes this one must be given.
    pub memory: ExaminationMemory,
    /// By which it can be repeated.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
}

impl Examination {
    /// Runs controls, then probes, and tells of each; `earlier` are probes of a run that was interrupted.
    ///
    /// Once `cancelled` is set, the probe at work ends soon, and no other begins.
    pub async fn run(
        self: Arc<Self>,
        earlier: Vec<ProbeRecord>,
        cancelled: Arc<AtomicBool>,
        mut tell: impl FnMut(ExaminationEvent<'_>),
    ) -> Result<ExaminationRecord, ProbeInterruption> {
        let began = Instant::now();
        let mut examiner = Examiner::new(self.clone(), self.unlearned(), cancelled.clone());
        let controls =
            control(&mut examiner, |done| tell(ExaminationEvent::Controlled(done))).await?;
        let is_graded = controls.iter().all(|control| control.refutation().is_none());
        let mut probes = earlier;
        // What had to wait goes on now.
        probes.retain(|done| done.probe.id != "V26" || self.earlier.awaited.is_empty());
        let chosen: Vec<_> = if is_graded { self.chosen().collect() } else { Vec::new() };
        for probe in chosen {
            if probes.iter().any(|done| done.probe.id == probe.id) {
                continue;
            }
            if cancelled.load(Ordering::Relaxed) {
                break;
            }
            tell(ExaminationEvent::Begins(probe));
            let record = self.probe(&examiner, probe).await;
            // It says nothing about the API that somebody pressed Ctrl-C.
            if cancelled.load(Ordering::Relaxed) {
                break;
            }
            tell(ExaminationEvent::Ended(&record));
            probes.push(record);
        }
        Ok(ExaminationRecord {
            oracle: self.level(),
            oracle_text: self.oracle.as_ref().map_or_else(String::new, |oracle| oracle.describe()),
            controls,
            learned: is_graded.then(|| examiner.learned().clone()),
            probes,
            operations: examiner.effects_spent(),
            memory: examiner.memory(),
            seed: self.seed,
            took: began.elapsed(),
        })
    }

    /// The probes that were asked for, in their order.
    pub fn chosen(&self) -> impl Iterator<Item = &'static Probe> {
        let is_wanted = |probe: &&Probe| {
            self.only.is_empty() || self.only.iter().any(|only| only.id == probe.id)
        };
        PROBES.iter().filter(is_wanted)
    }

    /// How much can be told about effects.
    pub fn level(&self) -> OracleLevel {
        match (&self.oracle, &self.api.id) {
            (Some(oracle), _) => oracle.level(),
            (None, Some(_)) => OracleLevel::Names,
            (None, None) => OracleLevel::Answers,
        }
    }

    /// What is missing for this probe, in words that say what to give.
    pub fn missing_for(&self, probe: &Probe) -> Option<&'static str> {
        probe.needs.iter().find_map(|need| self.missing(*need))
    }

    fn missing(&self, need: ProbeNeed) -> Option<&'static str> {
        let credentials = &self.api.credentials;
        let (is_there, wanted) = match need {
            ProbeNeed::Count => {
                (self.oracle.is_some(), "it needs somebody who counts effects (`--count`)")
            }
            // Found out by the controls.
            ProbeNeed::Http2 => (true, ""),
            ProbeNeed::SecondAddress => (
                self.api.addresses.len() > 1,
                "it needs a second address of the same API (`--also`)",
            ),
            ProbeNeed::OtherPath => {
                (self.api.other_path.is_some(), "it needs another operation (`--other-path`)")
            }
            ProbeNeed::LargeAnswer => (
                self.api.large_path.is_some(),
                "it needs an operation with a large answer (`--large-path`)",
            ),
            ProbeNeed::Credentials => {
                (!credentials.main.is_empty(), "nobody is asked who they are (`--credential`)")
            }
            ProbeNeed::OtherCredentials => (
                credentials.other.is_some(),
                "it needs somebody else's credentials (`--other-credential`)",
            ),
            ProbeNeed::RevokedCredentials => (
                credentials.revoked.is_some(),
                "it needs revoked credentials (`--revoked-credential`)",
            ),
            ProbeNeed::FailHook => (
                self.hooks.fail_before.is_some() || self.hooks.fail_after.is_some(),
                "it needs a way to let the server fail (`--fail-hook`)",
            ),
            ProbeNeed::KillHook => (
                self.hooks.kill.is_some() && self.hooks.start.is_some(),
                "it needs ways to kill and start the server (`--kill-cmd`, `--start-cmd`)",
            ),
            ProbeNeed::Retention => (
                self.declared.retention.is_some(),
                "it needs to know how long keys are kept (`--ttl`)",
            ),
        };
        (!is_there).then_some(wanted)
    }

    async fn probe(&self, examiner: &Examiner, probe: &'static Probe) -> ProbeRecord {
        let log = ProbeLog::begin();
        let missing = self.missing_for(probe).or_else(|| {
            let wants_http2 = probe.needs.contains(&ProbeNeed::Http2);
            (wants_http2 && !examiner.learned().http2).then_some("the API does not speak HTTP/2")
        });
        let verdict = match missing {
            Some(missing) => ProbeVerdict::inconclusive(missing),
            None => match (probe.run)(examiner, &log).await {
                Ok(verdict) => verdict,
                Err(interruption) => ProbeVerdict::inconclusive(interruption.to_string()),
            },
        };
        let took = log.elapsed();
        let LoggedProbe { exchanges, notes, spreads, reach } = log.end();
        let was_run = missing.is_none();
        ProbeRecord { probe, verdict, was_run, exchanges, notes, spreads, reach, took }
    }

    /// What is assumed before anything was looked at.
    fn unlearned(&self) -> LearnedConduct {
        LearnedConduct {
            syntax: self.api.key.syntax.unwrap_or(KeySyntax::Bare),
            // So slow that every answer is waited for as long as is allowed.
            latency: self.bounds.answer,
            success_status: 200,
            http2: false,
            count_lag: Duration::ZERO,
            answers_differ: false,
        }
    }
}
