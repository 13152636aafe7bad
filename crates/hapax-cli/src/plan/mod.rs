//! `hapax plan`: what a retention costs, before it is chosen.
//!
//! - `costs` is what was measured, with the command for each figure;
//! - `forecast` computes from it what a store needs, now and later, and what ends first;
//! - `advice` says what follows from that in words;
//! - `tables` is what people read, `document` what programs do.

mod advice;
mod costs;
mod document;
mod error;
mod forecast;
mod tables;

use std::{
    fs,
    io::{self, Write},
};

pub(crate) use self::error::PlanError;
use self::{
    costs::MeasuredCosts,
    forecast::{CapacityLimit, StoreForecast, forecast, limits, recommended},
};
use crate::{
    args::{PlanArgs, PlannedStore},
    report::html,
    units::span,
};

/// Months that are looked ahead to, where the rate grows.
const MONTHS: [u32; 5] = [0, 6, 12, 24, 36];

/// What one store would need.
struct StorePlan {
    store: PlannedStore,
    /// Now, and later if the rate grows.
    forecasts: Vec<StoreForecast>,
    /// What ends first comes first.
    limits: Vec<CapacityLimit>,
}

/// Everything that was computed.
struct StoragePlan<'a> {
    args: &'a PlanArgs,
    costs: MeasuredCosts,
    stores: Vec<StorePlan>,
    advice: Vec<String>,
}

/// Computes what was asked, and says it.
pub(crate) fn run(args: &PlanArgs) -> Result<(), PlanError> {
    refuse_short_window(args)?;
    let costs = MeasuredCosts::load()?;
    let stores = match args.store {
        Some(store) => vec![store],
        None => vec![PlannedStore::Sqlite, PlannedStore::Postgres],
    };
    let months = if args.growth > 0.0 { &MONTHS[..] } else { &MONTHS[..1] };
    let stores: Vec<_> = stores
        .into_iter()
        .map(|store| StorePlan {
            store,
            forecasts: months.iter().map(|month| forecast(&costs, args, store, *month)).collect(),
            limits: limits(&costs, args, store),
        })
        .collect();
    let advice = advice::advice(args, &costs, &stores);
    publish(&StoragePlan { args, costs, stores, advice })
}

/// A key that is forgotten while its client still tries is no key.
fn refuse_short_window(args: &PlanArgs) -> Result<(), PlanError> {
    match args.client_retries_for {
        Some(tries) if args.retention < tries => Err(PlanError::WindowTooShort {
            retention: span(args.retention),
            tries: span(tries),
            recommended: recommended(tries).as_secs() / 3600,
        }),
        Some(_) | None => Ok(()),
    }
}

fn publish(plan: &StoragePlan<'_>) -> Result<(), PlanError> {
    let mut out = io::stdout().lock();
    let report = tables::report(plan);
    if plan.args.json {
        let document = document::document(plan);
        let text = serde_json::to_string_pretty(&document).map_err(PlanError::Costs)?;
        writeln!(out, "{text}").map_err(PlanError::Print)?;
    } else {
        report.print(&mut out).map_err(PlanError::Print)?;
    }
    if let Some(path) = &plan.args.html {
        let saved = fs::write(path, html(&report));
        saved.map_err(|source| PlanError::Save { path: path.clone(), source })?;
    }
    Ok(())
}
