//! What encryption costs by itself: the engine on the memory store, where nothing else takes time.

use hapax::{Options, Salt, memory, wall_clock};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::{
    OperatingPlan,
    encryption::{EncryptionWay, MORE_US_MAX, WAYS},
};
use crate::{
    BenchError,
    arms::{Arm as _, engine::EngineArm},
    client::Stopwatch,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    progress::BenchProgress,
    report::ReportSection,
    request::ANSWER_BYTES,
    turns::{Measurement, NamedWay as _, WayTurns},
};

pub(super) const STEPS: u64 = 1;

/// CPU time of the thread that does it, in microseconds: what others do on the machine is not in it.
struct SealingSample {
    /// A new request: its claim and its settle.
    request_us: f64,
    /// A retry that is answered from the store.
    replay_us: f64,
    invalid: Option<String>,
}

impl Measurement for SealingSample {
    fn json(&self) -> Value {
        json!({
            "cpu_us_per_request": self.request_us,
            "cpu_us_per_replay": self.replay_us,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

/// Measures in turn, round after round.
pub(super) fn run(
    plan: &OperatingPlan,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    let turns = WayTurns::take(plan.rounds, &WAYS, |way| {
        progress.begin(format!("encryption alone, {}", way.label()))?;
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
        // The first requests are for the caches and the tenant's data key.
        runtime.block_on(measure(way, plan.repetitions / 10))?;
        runtime.block_on(measure(way, plan.repetitions))
    })?;
    progress.inc(STEPS);
    let more = |what: &str, of: fn(&SealingSample) -> f64| {
        let rounds = turns.rounds(EncryptionWay::Encrypted, EncryptionWay::Clear);
        let more = MeasuredSpread::of(rounds.map(|(sealed, clear)| of(sealed) - of(clear)));
        let what = format!("encrypted: more CPU per {what} than clear");
        BoundedFigure::at_most(&what, more, " us", MORE_US_MAX)
    };
    let claims =
        [more("request", |sample| sample.request_us), more("replay", |sample| sample.replay_us)];
    let title = format!("Encryption alone, {ANSWER_BYTES} bytes, in memory, 1 caller");
    Ok(turns.section(title, COLUMNS, claims))
}

/// Makes so many requests, one after another, then the same again.
async fn measure(way: EncryptionWay, requests: u64) -> Result<SealingSample, BenchError> {
    let store = memory::Store::new(Salt::from_bytes([7; 32]), || wall_clock().into());
    // Retries are answered from the store, not from what the engine remembers.
    let options = || Options { cache_bytes_max: 0, ..Options::default() };
    let arm = EngineArm::start(way.around(store.clone()).await?, options())?;
    let watch = Stopwatch::start()?;
    for number in 0..requests {
        arm.request(number).await?;
    }
    let request = watch.nanos_for_each(requests)?;
    let watch = Stopwatch::start()?;
    for number in 0..requests {
        arm.replay(&arm.ask(number)?).await?;
    }
    let replay = watch.nanos_for_each(requests)?;
    let bare = EngineArm::start(store, options())?;
    let (readable, clear) = (arm.completed(0..requests).await?, bare.completed(0..requests).await?);
    let clear_expected = match way {
        EncryptionWay::Clear => requests,
        EncryptionWay::Encrypted => 0,
    };
    arm.close().await;
    bare.close().await;
    let invalid = (readable != requests || clear != clear_expected).then(|| {
        format!(
            "{requests} requests were acknowledged, but {readable} can be read, {clear} of them \
             without the master key"
        )
    });
    Ok(SealingSample { request_us: request / 1e3, replay_us: replay / 1e3, invalid })
}

const COLUMNS: &Columns<SealingSample> = &[
    ("CPU us/request", SampleColumn::Median(|sample| Some(sample.request_us))),
    ("range", SampleColumn::Range(|sample| Some(sample.request_us))),
    ("CPU us/replay", SampleColumn::Median(|sample| Some(sample.replay_us))),
];
