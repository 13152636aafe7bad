//! The store on SQLite under many callers, clear and encrypted.

use hapax::{
    DynStore, Encryption, LocalMasterKey, Options, Store, encryption::EncryptedStore, sqlite,
    store::KeyStorage,
};

use super::{OperatingPlan, sealing};
use crate::{
    BenchError,
    arms::engine::EngineArm,
    disk::Disk,
    figures::{BoundedFigure, MeasuredSpread},
    run::BenchRun,
    sample::{self, COLUMNS, Measure, StoreSample},
    turns::{NamedWay, WayTurns},
};

const CALLERS: usize = 64;
const MASTER_KEY: [u8; 32] = [7; 32];
/// How much more CPU time a request may take, in microseconds.
pub(super) const MORE_US_MAX: f64 = 3.0;

/// What is kept of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncryptionWay {
    Clear,
    Encrypted,
}

pub(super) const WAYS: [EncryptionWay; 2] = [EncryptionWay::Clear, EncryptionWay::Encrypted];

impl NamedWay for EncryptionWay {
    fn label(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Encrypted => "encrypted",
        }
    }
}

impl EncryptionWay {
    /// The store as it is, or encrypted under a master key that is at hand.
    pub(super) async fn around(
        self,
        store: impl Store + KeyStorage,
    ) -> Result<DynStore, BenchError> {
        match self {
            Self::Clear => Ok(store.into()),
            Self::Encrypted => {
                let encryption = Encryption::new(LocalMasterKey::from_bytes(&MASTER_KEY));
                Ok(EncryptedStore::new(store, encryption).await?.into())
            }
        }
    }
}

/// How many measurements there will be of the store; those of sealing alone are counted there.
pub(super) fn steps(plan: &OperatingPlan) -> u64 {
    plan.steps(WAYS.len())
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &OperatingPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let directory = run.directory().to_owned();
    let turns = WayTurns::take(plan.rounds, &WAYS, |way| {
        run.progress.begin(format!("SQLite, {CALLERS} callers, {}", way.label()))?;
        let measure = Measure { duration: plan.duration, callers: CALLERS, at_half: false };
        let sample = sample::on_fresh_file(&directory, async |file| {
            let store = sqlite::Store::open(file, sqlite::Options::default())?;
            let arm = EngineArm::start(way.around(store).await?, Options::default())?;
            measure.of(None, Some(Disk::File(file)), arm).await
        });
        run.progress.inc(1);
        sample
    })?;
    let title = format!("Encryption, SQLite, {CALLERS} callers");
    run.add(turns.section(title, COLUMNS, [claim(&turns)]));
    run.add(sealing::run(plan, &run.progress)?);
    Ok(())
}

fn claim(turns: &WayTurns<EncryptionWay, StoreSample>) -> Option<BoundedFigure> {
    let rounds = turns.rounds(EncryptionWay::Encrypted, EncryptionWay::Clear);
    let more = MeasuredSpread::of(rounds.map(|(sealed, clear)| sealed.cpu_us - clear.cpu_us));
    BoundedFigure::at_most("encrypted: more CPU per request than clear", more, " us", MORE_US_MAX)
}
