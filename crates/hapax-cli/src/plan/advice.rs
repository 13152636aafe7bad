//! What follows from a plan, in words.

use super::{
    CapacityLimit, StorePlan,
    costs::MeasuredCosts,
    forecast::{peak, recommended},
};
use crate::{
    args::{PlanArgs, PlannedStore},
    table::grouped,
    units::span,
};

pub(super) fn advice(args: &PlanArgs, costs: &MeasuredCosts, stores: &[StorePlan]) -> Vec<String> {
    let mut advice = vec![window(args)];
    advice
        .extend(stores.iter().filter_map(|plan| Some(first_end(plan.store, plan.limits.first()?))));
    advice.push(which_store(args, costs));
    advice
}

fn window(args: &PlanArgs) -> String {
    let kept = span(args.retention);
    match args.client_retries_for {
        None => format!(
            "Keys are kept for {kept}: longer than any client tries? Say --client-retries-for, and it is checked."
        ),
        Some(tries) if args.retention < 2 * tries => format!(
            "Clients try for {}, and keys are kept for {kept}: little is left for a client that was off for a while. \
             Better two to three times as long: --retention {}h.",
            span(tries),
            recommended(tries).as_secs() / 3600
        ),
        Some(tries) => {
            format!("Keys are kept for {kept}, and clients try for {}: enough.", span(tries))
        }
    }
}

/// What ends first, and when.
fn first_end(store: PlannedStore, limit: &CapacityLimit) -> String {
    let CapacityLimit { what, now, at, month } = limit;
    let (store, now, at) = (store.as_str(), grouped(*now), grouped(*at));
    match month {
        None => format!("{store}: nothing ends. Nearest is {what}: {now} of {at}."),
        Some(month) if *month <= 0.0 => {
            format!("{store}: beyond {what} already: {now} of {at}. Measure before you rely on it.")
        }
        Some(month) => {
            format!("{store}: first to end is {what} ({now} of {at}), in {month:.0} months.")
        }
    }
}

fn which_store(args: &PlanArgs, costs: &MeasuredCosts) -> String {
    let half = costs.of(PlannedStore::Sqlite).requests_per_second.value / 2.0;
    let half = grouped(half);
    if args.gateways > 1 {
        return "Several gateways share keys: PostgreSQL. An SQLite file is for one machine."
            .to_owned();
    }
    if peak(args) > costs.of(PlannedStore::Sqlite).requests_per_second.value / 2.0 {
        return format!(
            "The peak is above {half} requests/s: PostgreSQL, on a machine of its own."
        );
    }
    format!(
        "SQLite is enough on one machine. Move to PostgreSQL when the peak comes near {half} requests/s, \
         or when a second gateway shall share keys."
    )
}
