//! Charts as SVG: lines and bars, in light and in dark, with a description for those who do not see
//! them.

mod axis;
mod bars;
mod lines;
mod svg;

pub(crate) use self::svg::CSS;
pub use self::{
    bars::{Bar, BarLook, BarRow, Bars},
    lines::{Plot, Point, Series},
    svg::{Svg, escape, sheet},
};

/// What is along one side of a chart.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// What is on it, with its unit.
    pub name: &'static str,
    /// How values are spread over it.
    pub scale: Scale,
}

/// How values are spread over an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Begins at zero.
    Linear,
    /// Each step is so many times the last. What is not above zero is left out.
    Log,
}
