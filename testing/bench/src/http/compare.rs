//! All ways in turn, round after round, for each number of connections.

use serde_json::json;
use tokio::runtime::Builder;

use super::{
    plan::HttpPlan,
    sample::{HttpGround, HttpSample},
};
use crate::{
    BenchError,
    args::HttpWay,
    figures::{BoundedFigure, Columns, FigureTarget, SampleColumn},
    load::float,
    report::{Axis, Plot, ReportSection, Scale, Series},
    run::BenchRun,
    turns::{NamedWay as _, WayTurns},
};

/// How many measurements there will be.
pub(super) fn steps(plan: &HttpPlan, ways: &[HttpWay]) -> u64 {
    let per_round = plan.connections.len() * ways.len();
    u64::from(plan.rounds) * u64::try_from(per_round).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &HttpPlan,
    ground: &HttpGround<'_>,
    ways: &[HttpWay],
    run: &mut BenchRun,
) -> Result<(), BenchError> {
    // One thread makes the load: it leaves the cores to what is measured.
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    let mut tables: Vec<Table> = plan.connections.iter().map(|_| WayTurns::new(ways)).collect();
    WayTurns::take_all(plan.rounds, &mut tables, |place, way| {
        let connections = plan.connections.get(place).copied().unwrap_or(1);
        run.progress.begin(format!("{connections} connections, {}", way.label()))?;
        let sample = ground.measure(plan, way, connections);
        let sample = runtime.block_on(run.progress.unless_interrupted(sample));
        run.progress.inc(1);
        sample
    })?;
    let tables = plan.connections.iter().copied().zip(&tables);
    let measured = || tables.clone().filter(|(_, table)| !table.is_empty());
    for (connections, table) in measured() {
        let mut section = section(table, connections);
        // What the tables show together is drawn under the last.
        if plan.connections.len() > 1 && plan.connections.last() == Some(&connections) {
            section.plots.extend(PLOTS.iter().map(|plotted| plotted.plot(ways, &measured())));
        }
        run.add(section);
    }
    Ok(())
}

type Table = WayTurns<HttpWay, HttpSample>;

fn section(table: &Table, connections: usize) -> ReportSection {
    let title = match connections {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    };
    let claims = COMPARISONS.iter().map(|comparison| comparison.claim(table, connections));
    let mut section = table.section(title, COLUMNS, claims);
    section.data["connections"] = json!(connections);
    section
}

/// One way against another, and what the ratio should be.
struct GatewayComparison {
    way: HttpWay,
    against: HttpWay,
    measure: HttpMeasure,
    target: Option<FigureTarget>,
}

impl GatewayComparison {
    fn claim(&self, table: &Table, connections: usize) -> Option<BoundedFigure> {
        let Self { way, against, measure, target } = self;
        let measured = table.ratio(*way, *against, measure.of())?;
        let what = format!("{}: {}, against {}", way.label(), measure.name(), against.label());
        let target = target.filter(|_| measure.is_judged_at(connections));
        Some(BoundedFigure { what, measured, unit: "x", target })
    }
}

const COMPARISONS: &[GatewayComparison] = &[
    against_nginx(HttpWay::Unprotected, Some(1.15)),
    against_nginx(HttpWay::Sqlite, Some(3.3)),
    against_nginx(HttpWay::Postgres, None),
    against_nginx(HttpWay::Replay, Some(0.6)),
    against_unprotected(HttpWay::Sqlite, Some(0.5)),
    against_unprotected(HttpWay::Postgres, Some(0.35)),
    against_unprotected(HttpWay::Replay, None),
];

const fn against_nginx(way: HttpWay, at_most: Option<f64>) -> GatewayComparison {
    let target = match at_most {
        Some(bound) => Some(FigureTarget::AtMost(bound)),
        None => None,
    };
    GatewayComparison { way, against: HttpWay::Nginx, measure: HttpMeasure::ProxyCpu, target }
}

const fn against_unprotected(way: HttpWay, at_least: Option<f64>) -> GatewayComparison {
    let target = match at_least {
        Some(bound) => Some(FigureTarget::AtLeast(bound)),
        None => None,
    };
    GatewayComparison { way, against: HttpWay::Unprotected, measure: HttpMeasure::Rate, target }
}

/// A measure against the number of connections.
struct Plotted {
    title: &'static str,
    y: Axis,
    of: fn(&HttpSample) -> Option<f64>,
}

impl Plotted {
    fn plot<'a>(
        &self,
        ways: &[HttpWay],
        tables: &(impl Iterator<Item = (usize, &'a Table)> + Clone),
    ) -> Plot {
        let series = ways.iter().map(|way| {
            let points = tables.clone().filter_map(|(connections, table)| {
                table.point(*way, float(connections as u64), self.of)
            });
            Series { name: way.label().to_owned(), points: points.collect() }
        });
        let x = Axis { name: "connections", scale: Scale::Log };
        Plot { title: self.title.to_owned(), x, y: self.y, series: series.collect() }
    }
}

const PLOTS: &[Plotted] = &[
    Plotted {
        title: "CPU time per request, against connections",
        y: Axis { name: "us", scale: Scale::Linear },
        of: |sample| sample.proxy_cpu_us,
    },
    Plotted {
        title: "Requests per second, against connections",
        y: Axis { name: "requests/s", scale: Scale::Linear },
        of: |sample| Some(sample.per_second),
    },
];

#[derive(Debug, Clone, Copy)]
enum HttpMeasure {
    ProxyCpu,
    Rate,
}

impl HttpMeasure {
    fn of(self) -> fn(&HttpSample) -> Option<f64> {
        match self {
            Self::ProxyCpu => |sample| sample.proxy_cpu_us,
            Self::Rate => |sample| Some(sample.per_second),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ProxyCpu => "CPU per request",
            Self::Rate => "requests/s",
        }
    }

    /// The rate is judged where commits are shared by many; CPU time everywhere.
    fn is_judged_at(self, connections: usize) -> bool {
        match self {
            Self::ProxyCpu => true,
            Self::Rate => connections == 256,
        }
    }
}

const COLUMNS: &Columns<HttpSample> = &[
    ("requests/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|sample| Some(sample.p999_ms))),
    ("p50 ms at half", SampleColumn::Median(|sample| Some(sample.open.p50_ms))),
    ("p99 ms at half", SampleColumn::Median(|sample| Some(sample.open.p99_ms))),
    ("p99.9 ms at half", SampleColumn::Median(|sample| Some(sample.open.p999_ms))),
    ("CPU us/request", SampleColumn::Median(|sample| sample.proxy_cpu_us)),
    ("database CPU us", SampleColumn::Median(|sample| sample.database_cpu_us)),
    ("disk bytes/key", SampleColumn::Median(|sample| sample.disk_bytes)),
    ("log bytes/request", SampleColumn::Median(|sample| sample.log_bytes)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::sample::Latency;

    fn sample(per_second: f64, cpu: f64) -> HttpSample {
        HttpSample {
            per_second,
            p50_ms: 1.0,
            p99_ms: 2.0,
            p999_ms: 3.0,
            open: Latency { per_second: per_second / 2.0, p50_ms: 1.0, p99_ms: 2.0, p999_ms: 3.0 },
            proxy_cpu_us: Some(cpu),
            database_cpu_us: None,
            disk_bytes: None,
            log_bytes: None,
            other_cpu_us: 1.0,
            invalid: None,
        }
    }

    fn table() -> Table {
        let ways = [HttpWay::Nginx, HttpWay::Unprotected, HttpWay::Sqlite];
        let mut table = Table::new(&ways);
        for slow in [1.0, 2.0, 4.0] {
            table.add(HttpWay::Nginx, sample(20_000.0 / slow, 30.0 * slow));
            table.add(HttpWay::Unprotected, sample(20_000.0 / slow, 33.0 * slow));
            table.add(HttpWay::Sqlite, sample(8000.0 / slow, 72.0 * slow));
        }
        table
    }

    #[test]
    fn a_round_is_compared_with_itself() {
        let claims = section(&table(), 256).claims;
        let said: Vec<_> = claims.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "gateway, unprotected: CPU per request, against nginx: 1.10x, \
                 target at most 1.15x: met",
                "gateway, SQLite: CPU per request, against nginx: 2.40x, target at most 3.30x: met",
                "gateway, SQLite: requests/s, against gateway, unprotected: 0.40x, \
                 target at least 0.50x: NOT MET",
            ]
        );
    }

    #[test]
    fn the_rate_has_a_target_where_many_share_a_commit() {
        let claims = section(&table(), 64).claims;
        assert!(
            claims
                .iter()
                .all(|claim| { claim.target.is_some() == claim.what.contains("CPU per request") })
        );
    }

    #[test]
    fn one_wrong_round_makes_the_table_invalid() {
        let mut table = table();
        table.add(
            HttpWay::Sqlite,
            HttpSample { invalid: Some("why".to_owned()), ..sample(1.0, 1.0) },
        );
        assert_eq!(section(&table, 64).invalid, ["gateway, SQLite: why"]);
    }
}
