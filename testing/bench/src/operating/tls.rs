//! The store on PostgreSQL under many callers, its connections plain and encrypted.

use std::sync::Arc;

use hapax::{Options, postgres};
use tokio_postgres::{Config, config::SslMode};

use super::OperatingPlan;
use crate::{
    BenchError,
    arms::{Arm as _, engine::EngineArm, postgres_baseline::connect},
    figures::BoundedFigure,
    run::BenchRun,
    sample::{self, COLUMNS, Measure, StoreSample},
    server::BenchServer,
    turns::{NamedWay, WayTurns},
};

const CALLERS: usize = 256;

/// How connections are made, as their address says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionWay {
    Plain,
    Tls,
}

const WAYS: [ConnectionWay; 2] = [ConnectionWay::Plain, ConnectionWay::Tls];

impl NamedWay for ConnectionWay {
    fn label(self) -> &'static str {
        match self {
            Self::Plain => "sslmode=disable",
            Self::Tls => "sslmode=require",
        }
    }
}

impl ConnectionWay {
    fn mode(self) -> SslMode {
        match self {
            Self::Plain => SslMode::Disable,
            Self::Tls => SslMode::Require,
        }
    }
}

/// How many measurements there will be.
pub(super) fn steps(plan: &OperatingPlan) -> u64 {
    plan.steps(WAYS.len())
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &OperatingPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    run.progress.begin("PostgreSQL, starting a server with a certificate")?;
    let server = BenchServer::with_tls(&plan.postgres)?;
    for fact in sample::workers()?.block_on(server.facts())? {
        run.note(fact);
    }
    let turns = WayTurns::take(plan.rounds, &WAYS, |way| {
        run.progress.begin(format!("PostgreSQL, {CALLERS} callers, {}", way.label()))?;
        let sample = sample::on_fresh_database(&server, async |config| {
            measure(plan, &server, config, way).await
        });
        run.progress.inc(1);
        sample
    })?;
    let ratio =
        turns.ratio(ConnectionWay::Tls, ConnectionWay::Plain, |sample| Some(sample.per_second));
    let claim = BoundedFigure::at_least(
        "sslmode=require: requests/s, against sslmode=disable",
        ratio,
        "x",
        0.95,
    );
    let title = format!("TLS to PostgreSQL, {CALLERS} callers");
    run.add(turns.section(title, COLUMNS, [claim]));
    Ok(())
}

async fn measure(
    plan: &OperatingPlan,
    server: &BenchServer,
    database: &Config,
    way: ConnectionWay,
) -> Result<StoreSample, BenchError> {
    let mut config = database.clone();
    config.ssl_mode(way.mode());
    let store = postgres::Store::connect(&config, postgres::Options::default()).await?;
    let arm = Arc::new(EngineArm::start(store, Options::default())?);
    let measure = Measure { duration: plan.duration, callers: CALLERS, at_half: false };
    let sample = measure.watch(Some(server), None, &arm).await;
    let sessions = Sessions::of(database).await;
    arm.close().await;
    let sample = sample?;
    Ok(StoreSample { invalid: sample.invalid.or(sessions?.wrong(way)), ..sample })
}

/// Who is connected to a database, as its server sees them.
struct Sessions {
    plain: i64,
    encrypted: i64,
}

impl Sessions {
    async fn of(database: &Config) -> Result<Self, BenchError> {
        let count = "SELECT count(*) FILTER (WHERE NOT ssl), count(*) FILTER (WHERE ssl) \
                     FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let row = connect(database).await?.query_one(count, &[]).await?;
        Ok(Self { plain: row.try_get(0)?, encrypted: row.try_get(1)? })
    }

    /// What is wrong with connections made this way.
    fn wrong(&self, way: ConnectionWay) -> Option<String> {
        let Self { plain, encrypted } = self;
        let right = match way {
            ConnectionWay::Plain => *plain > 0 && *encrypted == 0,
            ConnectionWay::Tls => *encrypted > 0 && *plain == 0,
        };
        (!right).then(|| format!("{encrypted} connections were encrypted, {plain} were not"))
    }
}
