//! Lines over two axes: how something grows.

use serde_json::{Value, json};

/// Series of measurements over the same axes.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Plot {
    pub(in crate::bench) title: String,
    pub(in crate::bench) x: Axis,
    pub(in crate::bench) y: Axis,
    pub(in crate::bench) series: Vec<Series>,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Axis {
    /// What is on it, with its unit.
    pub(in crate::bench) name: &'static str,
    pub(in crate::bench) scale: Scale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum Scale {
    /// Begins at zero.
    Linear,
    /// Each step is so many times the last. What is not above zero is left out.
    Log,
}

#[derive(Debug, Clone)]
pub(in crate::bench) struct Series {
    pub(in crate::bench) name: String,
    pub(in crate::bench) points: Vec<Point>,
}

/// What the rounds showed at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::bench) struct Point {
    pub(in crate::bench) x: f64,
    pub(in crate::bench) low: f64,
    pub(in crate::bench) median: f64,
    pub(in crate::bench) high: f64,
}

impl Plot {
    pub(super) fn json(&self) -> Value {
        let series = self.series.iter().map(|series| {
            let points = series.points.iter().map(
                |Point { x, low, median, high }| json!({ "x": x, "low": low, "median": median, "high": high }),
            );
            json!({ "name": series.name, "points": points.collect::<Vec<_>>() })
        });
        json!({
            "title": self.title,
            "x": self.x.json(),
            "y": self.y.json(),
            "series": series.collect::<Vec<_>>(),
        })
    }
}

impl Axis {
    fn json(self) -> Value {
        let scale = match self.scale {
            Scale::Linear => "linear",
            Scale::Log => "log",
        };
        json!({ "name": self.name, "scale": scale })
    }
}
