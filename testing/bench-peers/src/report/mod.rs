//! Asks, measures, and tells.

mod machine;
mod tables;

use std::{collections::HashMap, fs, path::Path};

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{
    args::Plan,
    error::BenchError,
    exam::{self, Finding},
    rounds::{self, Row},
    stage::Ground,
    ways::Way,
};

/// What was found out about each way.
type Findings = HashMap<Way, Vec<Finding>>;

/// Compares, prints and writes. False if something of ours is not as it should be; to find out such
/// things about peers is what this is for.
pub(crate) fn run(plan: &Plan) -> Result<bool, BenchError> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(BenchError::system("a runtime"))?;
    let ground = Ground::prepare(&plan.ways)?;
    for (what, how) in machine::facts() {
        println!("{what}: {how}");
    }
    runtime.block_on(compare(plan, &ground))
}

async fn compare(plan: &Plan, ground: &Ground) -> Result<bool, BenchError> {
    let mut findings = Findings::new();
    println!("\nWhat each does, by the effects seen at the handler:");
    for way in plan.ways.iter().copied().filter(|way| way.protects()) {
        let found = exam::examine(ground, way).await?;
        print!("{}", tables::exam(way, &found));
        findings.insert(way, found);
    }
    let mut rows = Vec::new();
    if plan.rounds > 0 {
        rows = rounds::run(plan, ground, |step| println!("{step}")).await?;
        for connections in &plan.connections {
            print!("{}", tables::speed(*connections, &rows, &findings));
        }
    }
    if let Some(path) = &plan.json {
        write(path, plan, &findings, &rows)?;
    }
    Ok(ours_are_right(&findings, &rows))
}

/// Why the figures of a row must not be compared.
fn invalid(row: &Row, findings: &Findings) -> Option<String> {
    let measured = row.samples.iter().find_map(|sample| sample.invalid.clone());
    measured.or_else(|| exam::disqualified(findings.get(&row.way)?))
}

fn ours_are_right(findings: &Findings, rows: &[Row]) -> bool {
    let failed = |way: &Way, found: &[Finding]| {
        way.is_ours()
            && found.iter().any(|finding| finding.yes == Some(false) && finding.is_owed(*way))
    };
    let examined = findings.iter().any(|(way, found)| failed(way, found));
    let measured = rows.iter().any(|row| row.way.is_ours() && invalid(row, findings).is_some());
    !examined && !measured
}

fn write(path: &Path, plan: &Plan, findings: &Findings, rows: &[Row]) -> Result<(), BenchError> {
    let examined = plan.ways.iter().filter_map(|way| {
        let found: Vec<Value> = findings.get(way)?.iter().map(Finding::json).collect();
        Some(json!({ "way": way.label(), "findings": found }))
    });
    let facts = machine::facts().into_iter().map(|(what, how)| (what.to_owned(), how.into()));
    let report = json!({
        "machine": facts.collect::<serde_json::Map<String, Value>>(),
        "seconds": plan.duration.as_secs(),
        "rounds": plan.rounds,
        "exam": examined.collect::<Vec<_>>(),
        "speed": rows.iter().map(Row::json).collect::<Vec<_>>(),
    });
    fs::write(path, format!("{report:#}\n")).map_err(BenchError::system("writing the report"))
}
