//! Several ways in turn, round after round.

use serde_json::{Map, Value, json};

use super::{
    error::BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, header, row},
    report::{Point, ReportSection},
};

/// One measurement of one way.
pub(super) trait Measurement {
    /// Every figure of it.
    fn json(&self) -> Value;

    /// What makes it worthless.
    fn invalid(&self) -> Option<&str>;
}

/// A way that has a name.
pub(super) trait NamedWay: Copy + PartialEq {
    fn label(self) -> &'static str;
}

/// Everything that was measured, by way.
#[derive(Debug)]
pub(super) struct WayTurns<W, S> {
    ways: Vec<(W, Vec<S>)>,
}

impl<W: NamedWay, S: Measurement> WayTurns<W, S> {
    /// Nothing yet of each of these ways.
    pub(super) fn new(ways: &[W]) -> Self {
        Self { ways: ways.iter().map(|way| (*way, Vec::new())).collect() }
    }

    /// Measures every way in every round. A run that is cut short keeps what it has, if anything.
    pub(super) fn take(
        rounds: u32,
        ways: &[W],
        mut take: impl FnMut(W) -> Result<S, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut table = [Self::new(ways)];
        Self::take_all(rounds, &mut table, |_, way| take(way))?;
        let [table] = table;
        Ok(table)
    }

    /// Measures every way of every table in every round, so that a table is spread over the whole
    /// run; `take` is told the table's place. A run that is cut short keeps what it has, if anything.
    pub(super) fn take_all(
        rounds: u32,
        tables: &mut [Self],
        mut take: impl FnMut(usize, W) -> Result<S, BenchError>,
    ) -> Result<(), BenchError> {
        for round in 0..rounds as usize {
            for (place, table) in tables.iter_mut().enumerate() {
                match table.round(round, |way| take(place, way)) {
                    Err(BenchError::CutShort) if round > 0 || place > 0 => return Ok(()),
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// Who goes first changes, so that nobody always finds the machine as one other left it.
    fn round(
        &mut self,
        round: usize,
        mut take: impl FnMut(W) -> Result<S, BenchError>,
    ) -> Result<(), BenchError> {
        let count = self.ways.len();
        for at in 0..count {
            let (way, samples) = &mut self.ways[(at + round) % count];
            samples.push(take(*way)?);
        }
        Ok(())
    }

    /// One more measurement of a way.
    #[cfg(test)]
    pub(super) fn add(&mut self, way: W, sample: S) {
        if let Some((_, samples)) = self.ways.iter_mut().find(|(known, _)| *known == way) {
            samples.push(sample);
        }
    }

    /// The measurements of a way.
    pub(super) fn of(&self, way: W) -> &[S] {
        self.ways.iter().find(|(known, _)| *known == way).map_or(&[], |(_, samples)| samples)
    }

    /// Whether nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.ways.iter().all(|(_, samples)| samples.is_empty())
    }

    /// A measure of two ways in each round: both saw the same machine.
    pub(super) fn rounds(&self, ours: W, other: W) -> impl Iterator<Item = (&S, &S)> {
        self.of(ours).iter().zip(self.of(other))
    }

    /// How two ways compare, each round with itself.
    pub(super) fn ratio(
        &self,
        ours: W,
        other: W,
        of: fn(&S) -> Option<f64>,
    ) -> Option<MeasuredSpread> {
        let ratios = self.rounds(ours, other).filter_map(|(ours, other)| {
            Some(of(ours)? / of(other)?).filter(|ratio| ratio.is_finite())
        });
        MeasuredSpread::of(ratios)
    }

    /// A measure of a way, as a place on a plot; `None` if it was not measured.
    pub(super) fn point(&self, way: W, x: f64, of: fn(&S) -> Option<f64>) -> Option<Point> {
        let MeasuredSpread { median, min, max } =
            MeasuredSpread::of(self.of(way).iter().filter_map(of))?;
        Some(Point { x, low: min, median, high: max })
    }

    /// The table, and what follows from it.
    pub(super) fn section(
        &self,
        title: String,
        columns: &Columns<S>,
        claims: impl IntoIterator<Item = Option<BoundedFigure>>,
    ) -> ReportSection {
        let ways = || self.ways.iter().map(|(way, samples)| (way.label(), samples));
        let invalid = ways().flat_map(|(label, samples)| {
            let reasons = samples.iter().filter_map(Measurement::invalid);
            reasons.map(move |reason| format!("{label}: {reason}"))
        });
        let data = ways().map(|(label, samples)| {
            (label.to_owned(), json!(samples.iter().map(Measurement::json).collect::<Vec<_>>()))
        });
        ReportSection {
            title,
            header: header(columns),
            rows: ways().map(|(label, samples)| row(label, samples, columns)).collect(),
            claims: claims.into_iter().flatten().collect(),
            plots: Vec::new(),
            invalid: invalid.collect(),
            data: json!({ "ways": data.collect::<Map<_, _>>() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct PlainWay(&'static str);

    impl NamedWay for PlainWay {
        fn label(self) -> &'static str {
            self.0
        }
    }

    impl Measurement for f64 {
        fn json(&self) -> Value {
            json!(self)
        }

        fn invalid(&self) -> Option<&str> {
            None
        }
    }

    const WAYS: [PlainWay; 3] = [PlainWay("a"), PlainWay("b"), PlainWay("c")];

    #[test]
    fn another_way_goes_first_in_each_round() {
        let mut order = String::new();
        let taken = WayTurns::take(3, &WAYS, |way| {
            order.push_str(way.0);
            Ok(1.0)
        });
        assert_eq!(order, "abcbcacab");
        assert!(WAYS.iter().all(|way| taken.as_ref().is_ok_and(|turns| turns.of(*way).len() == 3)));
    }

    #[test]
    fn a_run_that_is_cut_short_keeps_what_it_has_and_compares_whole_rounds() {
        let mut left = 5_u32;
        let turns = WayTurns::take(9, &WAYS, |way| {
            left = left.checked_sub(1).ok_or(BenchError::CutShort)?;
            Ok(if way == WAYS[1] { 4.0 } else { 2.0 })
        });
        let turns = turns.unwrap();
        assert_eq!(WAYS.map(|way| turns.of(way).len()), [1, 2, 2]);
        assert_eq!(turns.ratio(WAYS[1], WAYS[0], |x| Some(*x)).map(|x| x.median), Some(2.0));
    }

    #[test]
    fn a_run_that_is_cut_short_before_its_first_round_has_nothing() {
        let cut = WayTurns::<PlainWay, f64>::take(9, &WAYS, |_| Err(BenchError::CutShort));
        assert!(matches!(cut, Err(BenchError::CutShort)));
    }
}
