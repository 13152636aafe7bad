//! Plots and ratios: as data, and as what is drawn.

use hapax_cli::plot::{Axis, Bar, BarLook, BarRow, Bars, Plot, Point, Scale};
use serde_json::{Value, json};

use crate::figures::{BoundedFigure, FigureTarget, MeasuredSpread};

pub(super) fn plot_json(plot: &Plot) -> Value {
    let series = plot.series.iter().map(|series| {
        let points = series.points.iter().map(
            |Point { x, low, median, high }| json!({ "x": x, "low": low, "median": median, "high": high }),
        );
        json!({ "name": series.name, "points": points.collect::<Vec<_>>() })
    });
    json!({
        "title": plot.title,
        "x": axis_json(plot.x),
        "y": axis_json(plot.y),
        "series": series.collect::<Vec<_>>(),
    })
}

fn axis_json(axis: Axis) -> Value {
    let scale = match axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
    };
    json!({ "name": axis.name, "scale": scale })
}

/// All claims that are ratios: from 1, where both ways are the same, to the median, with the range
/// across it.
pub(super) fn ratios(title: &str, claims: &[BoundedFigure]) -> Bars {
    let ratios: Vec<&BoundedFigure> = claims.iter().filter(|claim| claim.unit == "x").collect();
    let said: Vec<String> = ratios.iter().map(ToString::to_string).collect();
    let row = |claim: &&BoundedFigure| BarRow { name: claim.what.clone(), bars: vec![bar(claim)] };
    Bars {
        title: format!("Ratios: {title}"),
        description: said.join("; "),
        unit: "x",
        from: Some(1.0),
        legend: Vec::new(),
        rows: ratios.iter().map(row).collect(),
    }
}

fn bar(claim: &BoundedFigure) -> Bar {
    let MeasuredSpread { median, min, max } = claim.measured;
    let bound = claim.target.map(|target| match target {
        FigureTarget::AtLeast(bound) | FigureTarget::AtMost(bound) => bound,
    });
    let look = match claim.met() {
        Some(true) => BarLook::Met,
        Some(false) => BarLook::Unmet,
        None => BarLook::Plain,
    };
    Bar { value: median, range: Some((min, max)), bound, look }
}
