//! Values side by side. The scale is logarithmic: ratios are what is compared.

use super::{
    Scale,
    axis::{Span, short},
    svg::{Anchor, At, LOOKS, Svg, WIDTH},
};
use crate::table::number;

/// Rows of bars over one axis.
#[derive(Debug, Clone)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// All of it in words.
    pub description: String,
    /// What values are followed by.
    pub unit: &'static str,
    /// Where bars begin; otherwise below the least value.
    pub from: Option<f64>,
    /// What the looks of bars stand for, in the order of their numbers.
    pub legend: Vec<&'static str>,
    /// From top to bottom.
    pub rows: Vec<BarRow>,
}

/// What has a name in common.
#[derive(Debug, Clone)]
pub struct BarRow {
    /// The name.
    pub name: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// One value.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Where the bar ends.
    pub value: f64,
    /// Between what else it was found.
    pub range: Option<(f64, f64)>,
    /// What it is held against.
    pub bound: Option<f64>,
    /// How it looks.
    pub look: BarLook,
}

/// What the colour of a bar says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarLook {
    /// Nothing.
    Plain,
    /// What it is held against is met.
    Met,
    /// It is not.
    Unmet,
    /// What the legend says at this number.
    Numbered(usize),
}

const HEAD: f64 = 22.0;
const LEGEND: f64 = 20.0;
const LEGEND_STEP: f64 = 150.0;
const BAR: f64 = 14.0;
const NAME: f64 = 20.0;
const GAP: f64 = 6.0;
const MARGIN: f64 = 8.0;
/// Where the axis begins, with room for half a mark's text before it.
const LEFT: f64 = 20.0;
/// Room for the value beside a bar.
const VALUE: f64 = 64.0;

impl Bars {
    /// The drawing; `None` if nothing can be shown.
    pub fn draw(&self) -> Option<Svg> {
        let span = self.span()?;
        let base = self.from.unwrap_or_else(|| span.low());
        let head = if self.legend.is_empty() { HEAD } else { HEAD + LEGEND };
        let bars = self.rows.iter().map(|row| NAME + BAR * count(row.bars.len()) + GAP);
        let height = head + bars.sum::<f64>() + MARGIN;
        let mut svg = Svg::new(height, &self.title, &self.description);
        for (at, name) in self.legend.iter().enumerate() {
            let x = LEFT + count(at) * LEGEND_STEP;
            svg.rect(&BarLook::Numbered(at).class(), At(x, 4.0), At(11.0, 11.0));
            svg.text("label", Anchor::Start, At(x + 17.0, 14.0), name);
        }
        let x = |value: f64| Some(LEFT + span.place(value)? * (WIDTH - VALUE - MARGIN - LEFT));
        for tick in span.ticks() {
            let Some(at) = x(tick) else { continue };
            let is_base = self.from.is_some_and(|from| (tick - from).abs() < 1e-9);
            let class = if is_base { "base" } else { "grid" };
            svg.line(class, At(at, head - 4.0), At(at, height - MARGIN));
            let said = format!("{}{}", short(tick), self.unit);
            svg.text("tick", Anchor::Middle, At(at, head - 9.0), &said);
        }
        let mut top = head;
        for row in &self.rows {
            svg.text("label", Anchor::Start, At(MARGIN, top + 14.0), &row.name);
            top += NAME;
            for bar in &row.bars {
                self.bar(&mut svg, bar, top, base, &x);
                top += BAR;
            }
            top += GAP;
        }
        Some(svg)
    }

    fn span(&self) -> Option<Span> {
        let bars = || self.rows.iter().flat_map(|row| &row.bars);
        let values = bars().flat_map(|bar| {
            let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
            // Something has to be seen of the least of them.
            let least = if self.from.is_some() { low } else { low * 0.99 };
            [bar.value, least, high, bar.bound.unwrap_or(bar.value)]
        });
        let span = Span::over(values.chain(self.from), Scale::Log);
        span.filter(|_| bars().next().is_some()).map(Span::rounded)
    }

    fn bar(&self, svg: &mut Svg, bar: &Bar, top: f64, base: f64, x: &impl Fn(f64) -> Option<f64>) {
        let middle = top + BAR / 2.0;
        if let (Some(from), Some(end)) = (x(base), x(bar.value)) {
            let width = (from - end).abs().max(1.0);
            svg.rect(&bar.look.class(), At(from.min(end), top), At(width, BAR));
        }
        if let Some((low, high)) = bar.range
            && let (Some(low), Some(high)) = (x(low), x(high))
        {
            svg.line("whisker", At(low, middle), At(high, middle));
            for end in [low, high] {
                svg.line("whisker", At(end, middle - 4.0), At(end, middle + 4.0));
            }
        }
        if let Some(at) = bar.bound.and_then(x) {
            svg.line("target", At(at, top - 3.0), At(at, top + BAR + 3.0));
        }
        let value = format!("{}{}", number(bar.value), self.unit);
        svg.text("value", Anchor::End, At(WIDTH - MARGIN, middle + 4.0), &value);
    }
}

impl BarLook {
    fn class(self) -> String {
        match self {
            Self::Plain => "bar".to_owned(),
            Self::Met => "bar met".to_owned(),
            Self::Unmet => "bar unmet".to_owned(),
            Self::Numbered(number) => format!("bar s{}", number % LOOKS),
        }
    }
}

fn count(number: usize) -> f64 {
    f64::from(u16::try_from(number).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(from: Option<f64>, rows: Vec<Vec<Bar>>) -> Bars {
        let row = |bars| BarRow { name: "a & b".to_owned(), bars };
        let rows = rows.into_iter().map(row).collect();
        let (title, description) = ("ratios".to_owned(), "in words".to_owned());
        Bars { title, description, unit: "x", from, legend: vec!["one", "other"], rows }
    }

    fn bar(value: f64, look: BarLook) -> Bar {
        Bar { value, range: None, bound: None, look }
    }

    #[test]
    fn bars_begin_where_they_are_told_to_and_go_either_way() {
        let rows = vec![vec![bar(10.0, BarLook::Met)], vec![bar(0.1, BarLook::Unmet)]];
        let drawn = bars(Some(1.0), rows).draw().unwrap().finish();
        for (look, from) in [("met", 214.0), ("unmet", 20.0)] {
            let rect = format!("<rect class=\"bar {look}\" x=\"{from:.1}\"");
            assert!(drawn.contains(&rect) && drawn.contains("width=\"194.0\""), "{drawn}");
        }
    }

    #[test]
    fn something_is_seen_of_the_least_where_nothing_says_where_bars_begin() {
        let values = vec![bar(1.0, BarLook::Numbered(0)), bar(20.0, BarLook::Numbered(1))];
        let drawn = bars(None, vec![values]).draw().unwrap().finish();
        let least = drawn.lines().rfind(|line| line.starts_with("<rect class=\"bar s0\""));
        let (_, width) = least.unwrap().split_once("width=\"").unwrap();
        let (width, _) = width.split_once('"').unwrap();
        assert!(width.parse::<f64>().unwrap() > 10.0, "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(bars(Some(1.0), Vec::new()).draw().is_none());
    }
}
