//! Where on the paper a figure is.

use super::Scale;

pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from one place on the paper to another, with room for all figures.
    pub(super) fn new(
        scale: Scale,
        figures: impl Iterator<Item = f64> + Clone,
        (from, to): (f64, f64),
    ) -> Self {
        let most = figures.clone().fold(f64::MIN_POSITIVE, f64::max);
        let (low, high) = match scale {
            Scale::Linear => (0.0, most),
            Scale::Log => {
                let least = figures.filter(|figure| *figure > 0.0).fold(most, f64::min);
                // Below the least, not at it: something has to be seen of its bar.
                let low = (least * 0.99).log10().floor();
                (10_f64.powf(low), 10_f64.powf(most.log10().ceil()))
            }
        };
        // One figure alone still needs a scale.
        let high = if high > low { high } else { low * 10.0 };
        Self { scale, low, high, from, to }
    }

    pub(super) fn at(&self, figure: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (figure - self.low) / (self.high - self.low),
            Scale::Log => {
                let figure = figure.max(self.low);
                (figure / self.low).log10() / (self.high / self.low).log10()
            }
        };
        self.from + (self.to - self.from) * part
    }

    /// Round figures along the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = round_step(self.high / 6.0);
                let steps = (0_u32..20).map(|at| f64::from(at) * step);
                steps.take_while(|figure| *figure <= self.high).collect()
            }
            Scale::Log => {
                let decades = std::iter::successors(Some(self.low), |figure| Some(figure * 10.0));
                decades.take_while(|figure| *figure <= self.high * 1.001).collect()
            }
        }
    }
}

/// The next 1, 2 or 5 with zeros.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0].into_iter().find(|step| step * decade >= least);
    fits.unwrap_or(10.0) * decade
}
