//! The plan for programs.

use serde_json::{Value, json};

use super::{StoragePlan, forecast::peak};

pub(super) fn document(plan: &StoragePlan<'_>) -> Value {
    let args = plan.args;
    let kinds: Vec<_> = plan.stores.iter().map(|of| of.store).collect();
    let stores = plan.stores.iter().map(|of| {
        json!({
            "store": of.store.as_str(),
            "forecasts": of.forecasts,
            "limits": of.limits,
        })
    });
    json!({
        "requests_per_second": args.rate,
        "peak_per_second": peak(args),
        "retention_seconds": args.retention.as_secs(),
        "answer_bytes": args.answer,
        "request_bytes": args.request,
        "client_retries_for_seconds": args.client_retries_for.map(|tries| tries.as_secs()),
        "growth_per_month": args.growth,
        "stores": stores.collect::<Vec<_>>(),
        "advice": plan.advice,
        "measured_on": plan.costs.machine,
        "figures": plan.costs.figures(&kinds),
    })
}
