//! Several ways in turn, round after round.

use serde_json::{Value, json};

use super::{
    error::BenchError,
    figures::{Claim, Columns, Spread, header, row},
    report::Section,
};

/// One measurement of one way.
pub(super) trait Figures {
    /// Every figure of it.
    fn json(&self) -> Value;

    /// What makes it worthless.
    fn invalid(&self) -> Option<&str>;
}

/// A way that has a name.
pub(super) trait Named: Copy {
    fn label(self) -> &'static str;
}

/// Everything that was measured, by way.
pub(super) struct Turns<W, S, const N: usize> {
    ways: [W; N],
    samples: [Vec<S>; N],
}

impl<W: Named, S: Figures, const N: usize> Turns<W, S, N> {
    /// Measures every way in every round. Who goes first changes, so that nobody always finds the
    /// machine as one other left it.
    pub(super) fn take(
        rounds: u32,
        ways: [W; N],
        mut take: impl FnMut(W) -> Result<S, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut samples = [const { Vec::new() }; N];
        for round in 0..rounds as usize {
            for at in 0..N {
                let at = (at + round) % N;
                samples[at].push(take(ways[at])?);
            }
        }
        Ok(Self { ways, samples })
    }

    /// The measurements of the way at this place.
    pub(super) fn of(&self, way: usize) -> &[S] {
        self.samples.get(way).map_or(&[], Vec::as_slice)
    }

    /// How two ways compare, each round with itself: both saw the same machine.
    pub(super) fn ratio(&self, ours: usize, other: usize, of: fn(&S) -> f64) -> Option<Spread> {
        let rounds = self.of(ours).iter().zip(self.of(other));
        Spread::of(rounds.map(|(ours, other)| of(ours) / of(other)))
    }

    /// The table, and what follows from it.
    pub(super) fn section(
        &self,
        title: String,
        columns: &Columns<S>,
        claims: impl IntoIterator<Item = Option<Claim>>,
    ) -> Section {
        let ways = || self.ways.iter().zip(&self.samples).map(|(way, all)| (way.label(), all));
        let invalid = ways().flat_map(|(label, samples)| {
            let reasons = samples.iter().filter_map(Figures::invalid);
            reasons.map(move |reason| format!("{label}: {reason}"))
        });
        let data = ways().map(|(label, samples)| {
            (label.to_owned(), json!(samples.iter().map(Figures::json).collect::<Vec<_>>()))
        });
        Section {
            title,
            header: header(columns),
            rows: ways().map(|(label, samples)| row(label, samples, columns)).collect(),
            claims: claims.into_iter().flatten().collect(),
            invalid: invalid.collect(),
            data: json!({ "ways": data.collect::<serde_json::Map<_, _>>() }),
        }
    }
}
