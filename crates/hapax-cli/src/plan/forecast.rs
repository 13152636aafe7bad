//! What a store needs, computed: no clock, no chance, nobody asked.

use std::time::Duration;

use serde::Serialize;

use super::costs::MeasuredCosts;
use crate::args::{PlanArgs, PlannedStore};

const HOUR_SECS: f64 = 3600.0;
const DAY_SECS: f64 = 24.0 * HOUR_SECS;
/// As those who sell disks by the month count it.
const MONTH_SECS: f64 = 730.0 * HOUR_SECS;
const GIGABYTE: f64 = 1e9;
const MILLION: f64 = 1e6;

/// What a store needs while requests come at a rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StoreForecast {
    /// Months from now.
    pub(super) month: u32,
    pub(super) requests_per_second: f64,
    pub(super) peak_per_second: f64,
    /// Keys that are stored at the same time.
    pub(super) keys: f64,
    pub(super) disk_bytes: f64,
    /// Claims and settles in a second; those that come together share a sync.
    pub(super) writes_per_second: f64,
    /// What the server writes to its log in a day; `None` where nobody measured it.
    pub(super) log_bytes_per_day: Option<f64>,
    /// Cores of gateways at the peak.
    pub(super) gateway_cores: f64,
    /// Cores of the database server at the peak; `None` where there is none.
    pub(super) server_cores: Option<f64>,
    /// Connections to the server.
    pub(super) connections: u32,
    /// Of a million requests; `None` without a price.
    pub(super) cost_per_million: Option<f64>,
}

/// What a store needs, so many months from now.
pub(super) fn forecast(
    costs: &MeasuredCosts,
    args: &PlanArgs,
    store: PlannedStore,
    month: u32,
) -> StoreForecast {
    let grown = (1.0 + args.growth).powf(f64::from(month));
    let (rate, peak) = (args.rate * grown, peak(args) * grown);
    let (answer, request) = (args.answer as f64, args.request as f64);
    let of_store = costs.of(store);
    let keys = rate * args.retention.as_secs_f64();
    let cores = |us: f64| peak * us / MILLION;
    let log = costs.log_bytes(store, answer, request);
    StoreForecast {
        month,
        requests_per_second: rate,
        peak_per_second: peak,
        keys,
        disk_bytes: keys * costs.disk_bytes(store, answer),
        writes_per_second: 2.0 * rate,
        log_bytes_per_day: log.map(|bytes| bytes * rate * DAY_SECS),
        gateway_cores: cores(costs.gateway_cpu_us.value),
        server_cores: of_store.server_cpu_us.as_ref().map(|us| cores(us.value)),
        connections: of_store.connections * args.gateways,
        cost_per_million: cost_per_million(costs, args, store),
    }
}

fn cost_per_million(costs: &MeasuredCosts, args: &PlanArgs, store: PlannedStore) -> Option<f64> {
    let months = args.retention.as_secs_f64() / MONTH_SECS;
    let bytes = costs.disk_bytes(store, args.answer as f64);
    let disk = args.disk.map(|price| MILLION * bytes / GIGABYTE * months * price);
    let server_us = costs.of(store).server_cpu_us.as_ref().map_or(0.0, |figure| figure.value);
    let us = costs.gateway_cpu_us.value + server_us;
    let cpu = args.cpu.map(|price| MILLION * us / MILLION / HOUR_SECS * price);
    match (disk, cpu) {
        (None, None) => None,
        (disk, cpu) => Some(disk.unwrap_or(0.0) + cpu.unwrap_or(0.0)),
    }
}

/// Something that ends when a value has grown to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CapacityLimit {
    pub(super) what: &'static str,
    pub(super) now: f64,
    pub(super) at: f64,
    /// Months until it is reached; `None` if it never is.
    pub(super) month: Option<f64>,
}

/// What ends first comes first; what never ends, last.
pub(super) fn limits(
    costs: &MeasuredCosts,
    args: &PlanArgs,
    store: PlannedStore,
) -> Vec<CapacityLimit> {
    let now = forecast(costs, args, store, 0);
    let limit =
        |what, now, at| CapacityLimit { what, now, at, month: months(now, at, args.growth) };
    let half = costs.of(store).requests_per_second.value / 2.0;
    let mut limits = vec![
        limit("peak requests/s, half of what was measured", now.peak_per_second, half),
        limit("keys in the store, as many as were measured", now.keys, costs.keys_measured.value),
    ];
    limits.sort_by(|one, other| {
        let order = |limit: &CapacityLimit| limit.month.unwrap_or(f64::INFINITY);
        order(one)
            .total_cmp(&order(other))
            .then((other.now / other.at).total_cmp(&(one.now / one.at)))
    });
    limits
}

/// Months until what grows has grown to this; `None` if it never does.
fn months(now: f64, at: f64, growth: f64) -> Option<f64> {
    if now >= at {
        return Some(0.0);
    }
    (growth > 0.0).then(|| (at / now).ln() / (1.0 + growth).ln())
}

pub(super) fn peak(args: &PlanArgs) -> f64 {
    args.peak.unwrap_or(args.rate).max(args.rate)
}

/// How long keys should be kept for clients that try for so long: three times as long, in whole hours.
pub(super) fn recommended(tries: Duration) -> Duration {
    Duration::from_secs((3 * tries.as_secs()).div_ceil(3600) * 3600)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        plan: PlanArgs,
    }

    fn args(more: &[&str]) -> PlanArgs {
        let typed = ["plan", "--rate", "100/s"].iter().chain(more);
        Typed::try_parse_from(typed).unwrap().plan
    }

    #[test]
    fn rate_times_retention_times_the_size_of_a_row_is_what_is_stored() {
        let costs = MeasuredCosts::load().unwrap();
        let now = forecast(&costs, &args(&[]), PlannedStore::Sqlite, 0);
        assert_eq!(now.keys, 8_640_000.0);
        assert_eq!(now.disk_bytes, now.keys * costs.disk_bytes(PlannedStore::Sqlite, 512.0));
        let twice = forecast(&costs, &args(&["--retention", "48h"]), PlannedStore::Sqlite, 0);
        assert_eq!(twice.disk_bytes, 2.0 * now.disk_bytes);
        let larger = forecast(&costs, &args(&["--answer", "4KiB"]), PlannedStore::Postgres, 0);
        assert!(
            larger.disk_bytes > forecast(&costs, &args(&[]), PlannedStore::Postgres, 0).disk_bytes
        );
    }

    #[test]
    fn money_is_told_only_with_a_price() {
        let costs = MeasuredCosts::load().unwrap();
        let cost =
            |more: &[&str]| forecast(&costs, &args(more), PlannedStore::Sqlite, 0).cost_per_million;
        assert_eq!(cost(&[]), None);
        let disk = cost(&["--disk", "0.10/GB-month", "--retention", "30d"]).unwrap();
        let expected =
            costs.disk_bytes(PlannedStore::Sqlite, 512.0) * 1e6 / 1e9 * (720.0 / 730.0) * 0.10;
        assert!((disk - expected).abs() < 1e-9, "{disk}");
        assert!(
            cost(&["--disk", "0.10/GB-month", "--retention", "30d", "--cpu", "0.04/core-hour"])
                .unwrap()
                > disk
        );
    }

    #[test]
    fn growth_says_when_a_limit_is_reached_and_which_is_the_first() {
        let costs = MeasuredCosts::load().unwrap();
        let still = limits(&costs, &args(&["--retention", "1h"]), PlannedStore::Sqlite);
        assert!(still.iter().all(|limit| limit.month.is_none()), "{still:?}");
        let grows = limits(&costs, &args(&["--growth", "5%/month"]), PlannedStore::Sqlite);
        assert!(grows[0].what.starts_with("keys"), "{grows:?}");
        let month = grows[0].month.unwrap();
        assert!((8_640_000.0 * 1.05_f64.powf(month) - 10_000_000.0).abs() < 1.0, "{month}");
        let busy = limits(&costs, &args(&["--peak", "50000/s"]), PlannedStore::Sqlite);
        assert_eq!(busy[0].month, Some(0.0));
        assert!(busy[0].what.starts_with("peak"), "{busy:?}");
    }
}
