//! All ways in turn, round after round, for each number of connections.

use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use super::{
    plan::HttpPlan,
    sample::{Ground, Sample},
};
use crate::{
    args::HttpWay,
    bench::{
        BenchError,
        figures::{Claim, Column, Columns, Spread, Target, header, row},
        report::Section,
    },
};

/// How many measurements there will be.
pub(super) fn steps(plan: &HttpPlan, ways: &[HttpWay]) -> u64 {
    let per_round = plan.connections.len() * ways.len();
    u64::from(plan.rounds) * u64::try_from(per_round).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) async fn run(
    plan: &HttpPlan,
    ground: &Ground<'_>,
    ways: &[HttpWay],
    progress: &ProgressBar,
) -> Result<Vec<Section>, BenchError> {
    let mut tables: Vec<Table> =
        plan.connections.iter().map(|count| Table::new(*count, ways)).collect();
    let mut order = ways.to_vec();
    for _ in 0..plan.rounds {
        for table in &mut tables {
            for way in &order {
                let label = way.label();
                progress.set_message(format!("{} connections, {label}", table.connections));
                let sample = ground.measure(plan, *way, table.connections).await?;
                table.add(*way, sample);
                progress.inc(1);
            }
        }
        // Who goes first changes, so that nobody always finds the machine as the same other left it.
        if let Some(last) = order.pop() {
            order.insert(0, last);
        }
    }
    Ok(tables.iter().map(Table::section).collect())
}

struct Table {
    connections: usize,
    ways: Vec<(HttpWay, Vec<Sample>)>,
}

impl Table {
    fn new(connections: usize, ways: &[HttpWay]) -> Self {
        Self { connections, ways: ways.iter().map(|way| (*way, Vec::new())).collect() }
    }

    fn add(&mut self, way: HttpWay, sample: Sample) {
        if let Some((_, samples)) = self.ways.iter_mut().find(|(known, _)| *known == way) {
            samples.push(sample);
        }
    }

    fn samples(&self, way: HttpWay) -> &[Sample] {
        self.ways.iter().find(|(known, _)| *known == way).map_or(&[], |(_, samples)| samples)
    }

    fn section(&self) -> Section {
        let invalid = self.ways.iter().flat_map(|(way, samples)| {
            let reasons = samples.iter().filter_map(|sample| sample.invalid.as_ref());
            reasons.map(|reason| format!("{}: {reason}", way.label()))
        });
        let samples = self.ways.iter().map(|(way, samples)| {
            (way.label().to_owned(), samples.iter().map(Sample::json).collect())
        });
        let samples: Map<String, Value> = samples.collect();
        Section {
            title: match self.connections {
                1 => "1 connection".to_owned(),
                count => format!("{count} connections"),
            },
            header: header(COLUMNS),
            rows: self
                .ways
                .iter()
                .map(|(way, samples)| row(way.label(), samples, COLUMNS))
                .collect(),
            claims: COMPARISONS.iter().filter_map(|comparison| self.claim(comparison)).collect(),
            invalid: invalid.collect(),
            data: json!({ "connections": self.connections, "ways": samples }),
        }
    }

    /// Each round is compared with itself: both ways saw the same machine.
    fn claim(&self, comparison: &Comparison) -> Option<Claim> {
        let Comparison { way, against, measure, target } = comparison;
        let rounds = self.samples(*way).iter().zip(self.samples(*against));
        let ratios = rounds.filter_map(|(ours, theirs)| {
            Some(measure.of(ours)? / measure.of(theirs)?).filter(|ratio| ratio.is_finite())
        });
        let what = format!("{}: {}, against {}", way.label(), measure.name(), against.label());
        let target = target.filter(|_| measure.is_judged_at(self.connections));
        Some(Claim { what, measured: Spread::of(ratios)?, unit: "x", target })
    }
}

/// One way against another, and what the ratio should be.
struct Comparison {
    way: HttpWay,
    against: HttpWay,
    measure: Measure,
    target: Option<Target>,
}

const COMPARISONS: &[Comparison] = &[
    against_nginx(HttpWay::Unprotected, Some(1.25)),
    against_nginx(HttpWay::Sqlite, Some(3.0)),
    against_nginx(HttpWay::Postgres, None),
    against_nginx(HttpWay::Replay, Some(0.7)),
    against_unprotected(HttpWay::Sqlite, Some(0.45)),
    against_unprotected(HttpWay::Postgres, Some(0.35)),
    against_unprotected(HttpWay::Replay, None),
];

const fn against_nginx(way: HttpWay, at_most: Option<f64>) -> Comparison {
    let target = match at_most {
        Some(bound) => Some(Target::AtMost(bound)),
        None => None,
    };
    Comparison { way, against: HttpWay::Nginx, measure: Measure::ProxyCpu, target }
}

const fn against_unprotected(way: HttpWay, at_least: Option<f64>) -> Comparison {
    let target = match at_least {
        Some(bound) => Some(Target::AtLeast(bound)),
        None => None,
    };
    Comparison { way, against: HttpWay::Unprotected, measure: Measure::Rate, target }
}

#[derive(Debug, Clone, Copy)]
enum Measure {
    ProxyCpu,
    Rate,
}

impl Measure {
    fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::ProxyCpu => sample.proxy_cpu_us,
            Self::Rate => Some(sample.per_second),
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

const COLUMNS: &Columns<Sample> = &[
    ("requests/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("p50 ms at half", Column::Median(|sample| Some(sample.open.p50_ms))),
    ("p99 ms at half", Column::Median(|sample| Some(sample.open.p99_ms))),
    ("CPU us/request", Column::Median(|sample| sample.proxy_cpu_us)),
    ("database CPU us", Column::Median(|sample| sample.database_cpu_us)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::http::sample::Latency;

    fn sample(per_second: f64, cpu: f64) -> Sample {
        Sample {
            per_second,
            p50_ms: 1.0,
            p99_ms: 2.0,
            open: Latency { per_second: per_second / 2.0, p50_ms: 1.0, p99_ms: 2.0 },
            proxy_cpu_us: Some(cpu),
            database_cpu_us: None,
            other_cpu_us: 1.0,
            invalid: None,
        }
    }

    fn table(connections: usize) -> Table {
        let ways = [HttpWay::Nginx, HttpWay::Unprotected, HttpWay::Sqlite];
        let mut table = Table::new(connections, &ways);
        for slow in [1.0, 2.0, 4.0] {
            table.add(HttpWay::Nginx, sample(20_000.0 / slow, 30.0 * slow));
            table.add(HttpWay::Unprotected, sample(20_000.0 / slow, 36.0 * slow));
            table.add(HttpWay::Sqlite, sample(8000.0 / slow, 84.0 * slow));
        }
        table
    }

    #[test]
    fn a_round_is_compared_with_itself() {
        let claims = table(256).section().claims;
        let said: Vec<_> = claims.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "gateway, unprotected: CPU per request, against nginx: 1.20x, \
                 target at most 1.25x: met",
                "gateway, SQLite: CPU per request, against nginx: 2.80x, target at most 3.00x: met",
                "gateway, SQLite: requests/s, against gateway, unprotected: 0.40x, \
                 target at least 0.45x: NOT MET",
            ]
        );
    }

    #[test]
    fn the_rate_has_a_target_where_many_share_a_commit() {
        let claims = table(64).section().claims;
        assert!(
            claims
                .iter()
                .all(|claim| { claim.target.is_some() == claim.what.contains("CPU per request") })
        );
    }

    #[test]
    fn one_wrong_round_makes_the_table_invalid() {
        let mut table = table(64);
        table.add(HttpWay::Sqlite, Sample { invalid: Some("why".to_owned()), ..sample(1.0, 1.0) });
        assert_eq!(table.section().invalid, ["gateway, SQLite: why"]);
    }
}
