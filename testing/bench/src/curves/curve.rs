//! One curve: the same measurement at several places, for one line or more.

use hapax_cli::table::grouped;
use serde_json::json;

use crate::{
    error::BenchError,
    figures::{BoundedFigure, MeasuredSpread, number},
    load::float,
    report::{Axis, Plot, Point, ReportSection, Scale, Series},
    sample::StoreSample,
    turns::Measurement as _,
};

pub(super) struct Curve {
    pub(super) title: &'static str,
    pub(super) x: Axis,
    lines: Vec<CurveLine>,
}

/// One line, by what it shows.
pub(super) struct CurveLine {
    pub(super) name: String,
    places: Vec<PlotPlace>,
}

struct PlotPlace {
    x: u64,
    samples: Vec<StoreSample>,
}

type Of = fn(&StoreSample) -> f64;

impl Curve {
    /// Measures every line at every place in every round, so that all of them are spread over the
    /// whole run. A run that is cut short keeps what it has, if anything.
    pub(super) fn take(
        title: &'static str,
        x: Axis,
        rounds: u32,
        (lines, places): (&[String], &[u64]),
        mut take: impl FnMut(usize, u64) -> Result<StoreSample, BenchError>,
    ) -> Result<Self, BenchError> {
        let empty = || places.iter().map(|x| PlotPlace { x: *x, samples: Vec::new() }).collect();
        let lines = lines.iter().map(|name| CurveLine { name: name.clone(), places: empty() });
        let mut curve = Self { title, x, lines: lines.collect() };
        let mut measured = false;
        for round in 0..rounds as usize {
            for (place, x) in places.iter().enumerate() {
                let count = curve.lines.len();
                // Who goes first changes, so that nobody always finds the machine as one other left it.
                for line in (0..count).map(|at| (at + round) % count) {
                    match take(line, *x) {
                        Err(BenchError::CutShort) if measured => return Ok(curve),
                        sample => curve.lines[line].places[place].samples.push(sample?),
                    }
                    measured = true;
                }
            }
        }
        Ok(curve)
    }

    /// How a measure of a line at one place compares with the same line at another, round by round.
    pub(super) fn along(
        &self,
        line: usize,
        (at, from): (u64, u64),
        of: Of,
    ) -> Option<MeasuredSpread> {
        let line = self.lines.get(line)?;
        let of_place = |x| line.places.iter().find(|place| place.x == x);
        let (at, from) = (of_place(at)?, of_place(from)?);
        MeasuredSpread::of(at.samples.iter().zip(&from.samples).map(|(at, from)| of(at) / of(from)))
    }

    pub(super) fn section(&self, claims: Vec<BoundedFigure>) -> ReportSection {
        let places = || {
            self.lines.iter().flat_map(|line| line.places.iter().map(move |place| (line, place)))
        };
        let invalid = places().flat_map(|(line, place)| {
            let reasons = place.samples.iter().filter_map(|sample| sample.invalid());
            reasons.map(move |reason| format!("{}, {}: {reason}", line.name, place.x))
        });
        let data = self.lines.iter().map(|line| {
            let places = line.places.iter().map(|place| {
                let samples = place.samples.iter().map(StoreSample::json);
                json!({ "x": place.x, "samples": samples.collect::<Vec<_>>() })
            });
            json!({ "name": line.name, "places": places.collect::<Vec<_>>() })
        });
        ReportSection {
            title: self.title.to_owned(),
            header: vec![
                "way",
                self.x.name,
                "requests/s",
                "range",
                "p50 ms",
                "p99 ms",
                "p99.9 ms",
                "CPU us",
                "server CPU us",
                "writes/commit",
            ],
            rows: places().map(|(line, place)| row(line, place)).collect(),
            claims,
            plots: vec![
                self.plot("requests/s", |sample| sample.per_second),
                self.plot("p99 ms", |sample| sample.p99_ms),
            ],
            invalid: invalid.collect(),
            data: json!({ "lines": data.collect::<Vec<_>>() }),
        }
    }

    fn plot(&self, name: &'static str, of: Of) -> Plot {
        let series = self.lines.iter().map(|line| {
            let points = line.places.iter().filter_map(|place| {
                let MeasuredSpread { median, min, max } =
                    MeasuredSpread::of(place.samples.iter().map(of))?;
                // Nothing has a place on a scale of ratios; one byte is as good as none.
                let x = match self.x.scale {
                    Scale::Log => float(place.x.max(1)),
                    Scale::Linear => float(place.x),
                };
                Some(Point { x, low: min, median, high: max })
            });
            Series { name: line.name.clone(), points: points.collect() }
        });
        Plot {
            title: format!("{}: {name}", self.title),
            x: self.x,
            y: Axis { name, scale: Scale::Log },
            series: series.collect(),
        }
    }
}

fn row(line: &CurveLine, place: &PlotPlace) -> Vec<String> {
    let spread = |of: &dyn Fn(&StoreSample) -> Option<f64>| {
        MeasuredSpread::of(place.samples.iter().filter_map(of))
    };
    let median = |of: &dyn Fn(&StoreSample) -> Option<f64>| {
        spread(of).map_or_else(String::new, |spread| number(spread.median))
    };
    let range = spread(&|sample| Some(sample.per_second));
    vec![
        line.name.clone(),
        grouped(float(place.x)),
        median(&|sample| Some(sample.per_second)),
        range.map_or_else(String::new, |MeasuredSpread { min, max, .. }| {
            format!("{} to {}", number(min), number(max))
        }),
        median(&|sample| Some(sample.p50_ms)),
        median(&|sample| Some(sample.p99_ms)),
        median(&|sample| Some(sample.p999_ms)),
        median(&|sample| Some(sample.cpu_us)),
        median(&|sample| sample.server_cpu_us),
        median(&|sample| sample.writes_per_commit),
    ]
}
