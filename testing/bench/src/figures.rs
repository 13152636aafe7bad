//! Several measurements of one thing, and what is claimed about them.

use std::fmt;

use serde_json::{Value, json};

pub(super) use hapax_cli::table::number;

/// The median of several measurements, and how far they lie apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredSpread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl MeasuredSpread {
    /// `None` without measurements.
    pub(super) fn of(measurements: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Self { median, min, max })
    }

    pub(super) fn json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// What a column of a table shows of the samples of a way.
pub(super) enum SampleColumn<S> {
    /// The median of a measure.
    Median(fn(&S) -> Option<f64>),
    /// How far a measure lies apart.
    Range(fn(&S) -> Option<f64>),
}

impl<S> SampleColumn<S> {
    fn cell(&self, samples: &[S]) -> String {
        let spread = |measure: &fn(&S) -> Option<f64>| {
            MeasuredSpread::of(samples.iter().filter_map(measure))
        };
        let cell = match self {
            Self::Median(measure) => spread(measure).map(|spread| number(spread.median)),
            // One round has none.
            Self::Range(measure) => spread(measure)
                .filter(|spread| spread.min < spread.max)
                .map(|spread| format!("{} to {}", number(spread.min), number(spread.max))),
        };
        cell.unwrap_or_default()
    }
}

/// The columns of a table after its first, which names the way.
pub(super) type Columns<S> = [(&'static str, SampleColumn<S>)];

/// The names over a table with these columns.
pub(super) fn header<S>(columns: &Columns<S>) -> Vec<&'static str> {
    std::iter::once("way").chain(columns.iter().map(|(name, _)| *name)).collect()
}

/// The row of one way.
pub(super) fn row<S>(way: &str, samples: &[S], columns: &Columns<S>) -> Vec<String> {
    let cells = columns.iter().map(|(_, column)| column.cell(samples));
    std::iter::once(way.to_owned()).chain(cells).collect()
}

/// Something measured and the bound it is held against.
#[derive(Debug, Clone)]
pub(super) struct BoundedFigure {
    pub(super) what: String,
    pub(super) measured: MeasuredSpread,
    pub(super) unit: &'static str,
    pub(super) target: Option<FigureTarget>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum FigureTarget {
    AtLeast(f64),
    AtMost(f64),
}

impl BoundedFigure {
    /// Something that is to be at least so much, if it was measured.
    pub(super) fn at_least(
        what: &str,
        measured: Option<MeasuredSpread>,
        unit: &'static str,
        bound: f64,
    ) -> Option<Self> {
        let (what, target) = (what.to_owned(), Some(FigureTarget::AtLeast(bound)));
        measured.map(|measured| Self { what, measured, unit, target })
    }

    /// Something that is to be at most so much, if it was measured.
    pub(super) fn at_most(
        what: &str,
        measured: Option<MeasuredSpread>,
        unit: &'static str,
        bound: f64,
    ) -> Option<Self> {
        let (what, target) = (what.to_owned(), Some(FigureTarget::AtMost(bound)));
        measured.map(|measured| Self { what, measured, unit, target })
    }

    pub(super) fn met(&self) -> Option<bool> {
        self.target.map(|target| match target {
            FigureTarget::AtLeast(bound) => self.measured.median >= bound,
            FigureTarget::AtMost(bound) => self.measured.median <= bound,
        })
    }

    pub(super) fn json(&self) -> Value {
        let target = self.target.map(|target| match target {
            FigureTarget::AtLeast(bound) => json!({ "at_least": bound }),
            FigureTarget::AtMost(bound) => json!({ "at_most": bound }),
        });
        json!({
            "what": self.what,
            "measured": self.measured.json(),
            "unit": self.unit,
            "target": target,
            "met": self.met(),
        })
    }
}

impl fmt::Display for BoundedFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured: MeasuredSpread { median, min, max }, unit, target } = self;
        write!(f, "{what}: {}{unit}", number(*median))?;
        if min < max {
            write!(f, " ({} to {})", number(*min), number(*max))?;
        }
        if let Some(target) = target {
            write!(f, ", target {target}{unit}")?;
        }
        match self.met() {
            Some(true) => f.write_str(": met"),
            Some(false) => f.write_str(": NOT MET"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FigureTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "at least {}", number(*bound)),
            Self::AtMost(bound) => write!(f, "at most {}", number(*bound)),
        }
    }
}
