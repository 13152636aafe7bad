//! From values to places on a line, and which of them are marked.

use super::Scale;
use crate::table::number;

/// What an axis spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
}

/// Marks wanted between the ends of a linear axis.
const STEPS: f64 = 5.0;

impl Span {
    /// Everything that can be shown of these values; `None` if nothing can.
    pub(super) fn over(values: impl IntoIterator<Item = f64>, scale: Scale) -> Option<Self> {
        let shown = values.into_iter().filter(|value| shows(scale, *value));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        Some(match scale {
            Scale::Linear => {
                let step = step(high);
                Self { scale, low: 0.0, high: (high / step).ceil().max(1.0) * step }
            }
            Scale::Log => Self { scale, low, high },
        })
    }

    /// The same, from one round value to another.
    pub(super) fn rounded(self) -> Self {
        match self.scale {
            Scale::Linear => self,
            Scale::Log => {
                let below = rounds(self.low).into_iter().rev().find(|round| *round <= self.low);
                let above = rounds(self.high).into_iter().find(|round| *round >= self.high);
                let (low, high) = (below.unwrap_or(self.low), above.unwrap_or(self.high));
                // One value alone stands between two marks.
                let high = if low < high { high } else { low * 10.0 };
                Self { low, high, ..self }
            }
        }
    }

    /// The least that is on it.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// Where a value is, from 0 to 1; `None` if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !shows(self.scale, value) {
            return None;
        }
        let along = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        Some(if along.is_finite() { along.clamp(0.0, 1.0) } else { 0.5 })
    }

    /// The values to mark: round ones, and not too many.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high);
                let marks = (0..=16_u32).map(|mark| f64::from(mark) * step);
                marks.take_while(|mark| *mark <= self.high * 1.001).collect()
            }
            Scale::Log => {
                let tens = (self.high / self.low).log10();
                let mut marks = Vec::new();
                let mut power = power_below(self.low);
                while power <= self.high * 1.001 && marks.len() < 64 {
                    let within: &[f64] = if tens > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                    marks.extend(within.iter().map(|digit| digit * power));
                    power *= 10.0;
                }
                marks.retain(|mark| *mark >= self.low * 0.999 && *mark <= self.high * 1.001);
                marks
            }
        }
    }
}

fn shows(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// The round step that divides so much into a few.
fn step(high: f64) -> f64 {
    let rough = high / STEPS;
    if rough <= 0.0 {
        return 1.0;
    }
    let power = power_below(rough);
    let digits = [1.0, 2.0, 2.5, 5.0, 10.0];
    let round = digits.into_iter().find(|digit| digit * power >= rough * 0.999);
    round.unwrap_or(10.0) * power
}

fn power_below(value: f64) -> f64 {
    10_f64.powf((value * 1.000_001).log10().floor())
}

/// Round values around this one, in order.
fn rounds(value: f64) -> [f64; 5] {
    let power = power_below(value);
    [1.0, 2.0, 5.0, 10.0, 20.0].map(|digit| digit * power)
}

/// A value beside a mark, as short as it can be.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 999_999.5 => (value / 1e6, "M"),
        large if large >= 9_999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match value.abs() {
        small if small > 0.0 && small < 0.01 => format!("{value:.3}"),
        below if below < 1000.0 => format!("{value:.2}"),
        _ => return number(value) + unit,
    };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_value() {
        let span = Span::over([130.0, 870.0], Scale::Linear).unwrap();
        assert_eq!(span.ticks(), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(span.place(500.0), Some(0.5));
        let nothing = Span::over([0.0], Scale::Linear).unwrap();
        assert_eq!((nothing.place(0.0), nothing.ticks().last()), (Some(0.0), Some(&1.0)));
    }

    #[test]
    fn a_log_axis_marks_powers_of_ten_and_what_is_between_where_there_is_room() {
        let wide = Span::over([3.0, 70_000.0], Scale::Log).unwrap().rounded();
        assert_eq!(wide.ticks(), [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
        let narrow = Span::over([0.4, 3.0], Scale::Log).unwrap().rounded();
        let marked: Vec<String> = narrow.ticks().into_iter().map(short).collect();
        assert_eq!(marked, ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(Span::over([1.0, 100.0], Scale::Log).unwrap().place(10.0), Some(0.5));
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        assert_eq!(Span::over([0.0, -1.0], Scale::Log), None);
        assert_eq!(Span::over([f64::NAN, f64::INFINITY], Scale::Linear), None);
        let span = Span::over([0.0, 1.0, 100.0], Scale::Log).unwrap();
        assert_eq!((span.place(0.0), span.place(1.0)), (None, Some(0.0)));
        assert_eq!(Span::over([7.0], Scale::Log).unwrap().place(7.0), Some(0.5));
    }

    #[test]
    fn marks_are_short() {
        let said = [0.0, 0.005, 0.25, 5.0, 1024.0, 16_384.0, 1e6, 2.5e7].map(short);
        assert_eq!(said, ["0", "0.005", "0.25", "5", "1,024", "16.38k", "1M", "25M"]);
    }
}
