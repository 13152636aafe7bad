//! The plan as tables, and a plot of how it grows.

use hapax_cli::plot::{Axis, Plot, Point, Scale, Series, Svg};

use super::{StoragePlan, StoreForecast, StorePlan, forecast::forecast};
use crate::{
    report::{ChartedReport, Section},
    table::{grouped, number},
    units::{decimal_size, span},
};

/// How far the plot goes.
const PLOTTED_MONTHS: u32 = 36;

pub(super) fn report(plan: &StoragePlan<'_>) -> ChartedReport {
    let args = plan.args;
    let subject = format!(
        "{} new requests/s, {} at the peak, kept for {}, answers of {} bytes",
        number(args.rate),
        number(super::forecast::peak(args)),
        span(args.retention),
        grouped(args.answer as f64)
    );
    let mut sections: Vec<_> = plan.stores.iter().map(|store| needs(plan, store)).collect();
    sections.push(sources(plan));
    ChartedReport { title: "Plan", subject, sections }
}

fn needs(plan: &StoragePlan<'_>, of: &StorePlan) -> Section {
    Section {
        title: match of.store {
            crate::args::PlannedStore::Sqlite => "SQLite",
            crate::args::PlannedStore::Postgres => "PostgreSQL",
        },
        header: vec![
            "month",
            "requests/s",
            "keys",
            "disk",
            "writes/s",
            "log/day",
            "gateway cores",
            "server cores",
            "connections",
            "per million",
        ],
        rows: of.forecasts.iter().map(row).collect(),
        notes: Vec::new(),
        chart: if plan.args.growth > 0.0 { disk_chart(plan, of) } else { None },
    }
}

fn row(forecast: &StoreForecast) -> Vec<String> {
    let unknown = || "-".to_owned();
    vec![
        forecast.month.to_string(),
        number(forecast.requests_per_second),
        grouped(forecast.keys),
        decimal_size(forecast.disk_bytes),
        number(forecast.writes_per_second),
        forecast.log_bytes_per_day.map_or_else(unknown, decimal_size),
        number(forecast.gateway_cores),
        forecast.server_cores.map_or_else(unknown, number),
        forecast.connections.to_string(),
        forecast.cost_per_million.map_or_else(unknown, |cost| format!("{cost:.4}")),
    ]
}

fn disk_chart(plan: &StoragePlan<'_>, of: &StorePlan) -> Option<Svg> {
    let point = |month| {
        let needs = forecast(&plan.costs, plan.args, of.store, month);
        Point::exact(f64::from(month), needs.disk_bytes / 1e9)
    };
    Plot {
        title: format!("Disk for {}", of.store.as_str()),
        x: Axis { name: "months from now", scale: Scale::Linear },
        y: Axis { name: "GB", scale: Scale::Linear },
        series: vec![Series {
            name: format!("growing by {:.1}% a month", plan.args.growth * 100.0),
            points: (0..=PLOTTED_MONTHS).map(point).collect(),
        }],
    }
    .draw()
}

/// What to do, and where the figures come from.
fn sources(plan: &StoragePlan<'_>) -> Section {
    let stores: Vec<_> = plan.stores.iter().map(|of| of.store).collect();
    let mut notes = plan.advice.clone();
    notes.push(format!("Measured on {}; yours is another.", plan.costs.machine));
    let rows = plan.costs.figures(&stores).into_iter();
    let rows =
        rows.map(|figure| vec![figure.unit.clone(), number(figure.value), figure.command.clone()]);
    Section {
        title: "What follows, and from what",
        header: vec!["figure", "measured", "by"],
        rows: rows.collect(),
        notes,
        chart: None,
    }
}
