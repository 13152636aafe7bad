//! A gateway that nobody uses, with its dashboard open and without.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::{
    runtime::Builder,
    time::{Instant, sleep},
};

use super::{OperatingPlan, open_page::OpenPage};
use crate::{
    BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    http::{self, Child, GatewayProtection, GatewaySetup},
    load::float,
    process,
    run::BenchRun,
    turns::{Measurement, NamedWay, WayTurns},
};

const BROWSERS: usize = 10;
const TOKEN: &str = "bench";
/// How long a gateway is given to come to rest, and pages to be told for the first time.
const SETTLING: Duration = Duration::from_secs(1);
/// How many rounds are worth their time: nothing happens in them, and so little differs.
const ROUNDS_MAX: u32 = 3;
/// How often a gateway tells those who look, with room for one that is late.
const TOLD_EVERY: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DashboardWay {
    Unseen,
    Open,
}

const WAYS: [DashboardWay; 2] = [DashboardWay::Unseen, DashboardWay::Open];

impl NamedWay for DashboardWay {
    fn label(self) -> &'static str {
        match self {
            Self::Unseen => "nobody looks",
            Self::Open => "open in ten browsers",
        }
    }
}

impl DashboardWay {
    fn browsers(self) -> usize {
        match self {
            Self::Unseen => 0,
            Self::Open => BROWSERS,
        }
    }
}

struct DashboardSample {
    /// CPU time of the gateway's process, in percent of a core.
    core_percent: f64,
    /// How many figures each page was told, at least.
    told: Option<u64>,
    invalid: Option<String>,
}

impl Measurement for DashboardSample {
    fn json(&self) -> Value {
        json!({
            "percent_of_a_core": self.core_percent,
            "figures_told_to_each_page": self.told,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

fn rounds(plan: &OperatingPlan) -> u32 {
    plan.rounds.min(ROUNDS_MAX)
}

pub(super) fn steps(plan: &OperatingPlan) -> u64 {
    let ways = u64::try_from(WAYS.len()).unwrap_or(u64::MAX);
    u64::from(rounds(plan)) * ways
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &OperatingPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    let directory = run.directory().to_owned();
    let turns = WayTurns::take(rounds(plan), &WAYS, |way| {
        run.progress.begin(format!("an idle gateway, {}", way.label()))?;
        let sample = measure(plan, &directory, way);
        let sample = runtime.block_on(run.progress.unless_interrupted(sample));
        run.progress.inc(1);
        sample
    })?;
    let open = turns.rounds(DashboardWay::Open, DashboardWay::Unseen);
    let more =
        MeasuredSpread::of(open.map(|(open, unseen)| open.core_percent - unseen.core_percent));
    let what = "open in ten browsers: more CPU than when nobody looks";
    let claim = BoundedFigure::at_most(what, more, " % of a core", 2.0);
    let title = format!("The dashboard of an idle gateway, for {} s", plan.idle.as_secs_f64());
    run.add(turns.section(title, COLUMNS, [claim]));
    Ok(())
}

async fn measure(
    plan: &OperatingPlan,
    directory: &Path,
    way: DashboardWay,
) -> Result<DashboardSample, BenchError> {
    let files = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
    let upstream = Child::upstream(files.path())?;
    let setup = GatewaySetup {
        program: &plan.program,
        upstream: upstream.port,
        store: http::sqlite(files.path()),
        protection: GatewayProtection::Protect,
        settings: format!("admin_token = \"{TOKEN}\"\n"),
        directory: files.path(),
    };
    let gateway = setup.start()?;
    let mut pages = Vec::with_capacity(way.browsers());
    for _ in 0..way.browsers() {
        pages.push(OpenPage::open(gateway.admin, TOKEN).await?);
    }
    sleep(SETTLING).await;
    let (began, before) = (Instant::now(), process::family_cpu(gateway.child.pid())?);
    sleep(plan.idle).await;
    let used = process::family_cpu(gateway.child.pid())?.saturating_sub(before);
    let lasted = began.elapsed();
    let told = pages.iter().map(OpenPage::figures).min();
    let expected = 1 + lasted.as_secs() / TOLD_EVERY.as_secs();
    let invalid = told.filter(|told| *told < expected).map(|told| {
        let seconds = lasted.as_secs();
        format!("a page was told {told} figures in {seconds} s, fewer than {expected}")
    });
    let core_percent = 100.0 * used.as_secs_f64() / lasted.as_secs_f64();
    Ok(DashboardSample { core_percent, told, invalid })
}

const COLUMNS: &Columns<DashboardSample> = &[
    ("% of a core", SampleColumn::Median(|sample| Some(sample.core_percent))),
    ("range", SampleColumn::Range(|sample| Some(sample.core_percent))),
    ("figures told", SampleColumn::Median(|sample| sample.told.map(float))),
];
