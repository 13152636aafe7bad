//! Lines over two axes, how something grows: grid, bands of what the rounds showed, lines of medians, and who is who.

use super::{
    Axis, Scale,
    axis::{Span, short},
    svg::{Anchor, At, LOOKS, Svg, WIDTH},
};
use crate::table::number;

/// Series of measurements over the same axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Along the bottom.
    pub x: Axis,
    /// Along the side.
    pub y: Axis,
    /// The lines, in the order of their looks.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// What the rounds showed at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The lowest of them.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The highest of them.
    pub high: f64,
}

impl Point {
    /// What is known to be so, without a range.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, low: y, median: y, high: y }
    }
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 236.0;
const LEGEND: f64 = BOTTOM + 52.0;
const LEGEND_ROW: f64 = 18.0;
/// Letters that fit into half a row of the legend.
const HALF_ROW: usize = 30;
/// Places that are marked by their own values, where there are no more of them.
const OWN_TICKS_MAX: usize = 11;

/// Points of a series that are marked and told one by one; of more, the line is enough.
const MARKED_MAX: usize = 32;

impl Plot {
    /// The drawing; `None` if nothing can be shown.
    pub fn draw(&self) -> Option<Svg> {
        draw(self)
    }
}

fn draw(plot: &Plot) -> Option<Svg> {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let xs = Span::over(points().map(|point| point.x), plot.x.scale)?;
    let ys = points().flat_map(|point| [point.low, point.median, point.high]);
    let ys = Span::over(ys, plot.y.scale)?.rounded();
    let place = |x: f64, y: f64| {
        let (along, up) = (xs.place(x)?, ys.place(y)?);
        Some(At(LEFT + 12.0 + along * (RIGHT - LEFT - 24.0), BOTTOM - up * (BOTTOM - TOP)))
    };
    let columns =
        if plot.series.iter().all(|series| series.name.len() <= HALF_ROW) { 2 } else { 1 };
    let rows = plot.series.len().div_ceil(columns);
    let height = LEGEND + LEGEND_ROW * f64::from(u16::try_from(rows).unwrap_or(u16::MAX));
    let mut svg = Svg::new(height, &plot.title, &said(plot));
    grid(&mut svg, plot, xs, ys);
    for (at, series) in plot.series.iter().enumerate() {
        line(&mut svg, series, at % LOOKS, &place);
        let column = if at % columns == 0 { 0.0 } else { WIDTH / 2.0 };
        let row = f64::from(u16::try_from(at / columns).unwrap_or(u16::MAX));
        legend(&mut svg, series, at % LOOKS, At(column, LEGEND + row * LEGEND_ROW));
    }
    Some(svg)
}

fn grid(svg: &mut Svg, plot: &Plot, xs: Span, ys: Span) {
    svg.text("axis", Anchor::Start, At(4.0, 14.0), plot.y.name);
    svg.text("axis", Anchor::End, At(RIGHT, BOTTOM + 34.0), plot.x.name);
    for tick in ys.ticks() {
        let Some(up) = ys.place(tick) else { continue };
        let y = BOTTOM - up * (BOTTOM - TOP);
        svg.line("grid", At(LEFT, y), At(RIGHT, y));
        svg.text("tick", Anchor::End, At(LEFT - 5.0, y + 4.0), &short(tick));
    }
    for tick in x_ticks(plot, xs) {
        let Some(along) = xs.place(tick) else { continue };
        let x = LEFT + 12.0 + along * (RIGHT - LEFT - 24.0);
        svg.line("grid", At(x, TOP), At(x, BOTTOM + 4.0));
        svg.text("tick", Anchor::Middle, At(x, BOTTOM + 17.0), &short(tick));
    }
}

/// Where something was measured, if there is room for that.
fn x_ticks(plot: &Plot, xs: Span) -> Vec<f64> {
    let mut own: Vec<f64> =
        plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    own.sort_by(f64::total_cmp);
    own.dedup();
    if plot.x.scale == Scale::Log && own.len() <= OWN_TICKS_MAX { own } else { xs.ticks() }
}

fn line(svg: &mut Svg, series: &Series, look: usize, place: &impl Fn(f64, f64) -> Option<At>) {
    let places = |of: fn(&Point) -> f64| {
        series.points.iter().filter_map(move |point| place(point.x, of(point)))
    };
    let mut band: Vec<At> = places(|point| point.high).collect();
    band.extend(places(|point| point.low).collect::<Vec<_>>().into_iter().rev());
    svg.polygon(&format!("band s{look}"), &band);
    for point in &series.points {
        if let (Some(low), Some(high)) = (place(point.x, point.low), place(point.x, point.high)) {
            svg.line(&format!("whisker s{look}"), low, high);
        }
    }
    svg.polyline(&format!("line s{look}"), &places(|point| point.median).collect::<Vec<_>>());
    let marked = if is_marked(series) { &series.points[..] } else { &[] };
    for point in marked {
        if let Some(at) = place(point.x, point.median) {
            svg.dot(&format!("dot s{look}"), at, &format!("{}, {}", series.name, told(point)));
        }
    }
}

fn legend(svg: &mut Svg, series: &Series, look: usize, At(x, y): At) {
    let places = [At(x + 4.0, y - 4.0), At(x + 34.0, y - 4.0)];
    svg.polyline(&format!("line s{look}"), &places);
    svg.text("label", Anchor::Start, At(x + 40.0, y), &series.name);
}

/// Everything that is drawn, in words.
fn said(plot: &Plot) -> String {
    let series = plot.series.iter().map(|series| {
        let points: Vec<String> = if is_marked(series) {
            series.points.iter().map(told).collect()
        } else {
            extremes(series).into_iter().flatten().map(told).collect()
        };
        format!("{}: {}", series.name, points.join(", "))
    });
    let (x, y) = (plot.x.name, plot.y.name);
    format!("{y} against {x}. {}", series.collect::<Vec<_>>().join("; "))
}

fn is_marked(series: &Series) -> bool {
    series.points.len() <= MARKED_MAX
}

/// The lowest point and the highest.
fn extremes(series: &Series) -> [Option<&Point>; 2] {
    let by_height = |one: &&Point, other: &&Point| one.median.total_cmp(&other.median);
    [series.points.iter().min_by(by_height), series.points.iter().max_by(by_height)]
}

fn told(point: &Point) -> String {
    let Point { x, low, median, high } = *point;
    let range =
        if low < high { format!(" ({} to {})", number(low), number(high)) } else { String::new() };
    format!("at {}: {}{range}", short(x), number(median))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<Point>) -> Plot {
        Plot {
            title: "rate".to_owned(),
            x: Axis { name: "callers", scale: Scale::Log },
            y: Axis { name: "requests/s", scale: Scale::Linear },
            series: vec![Series { name: "a & b".to_owned(), points }],
        }
    }

    #[test]
    fn a_line_goes_through_the_medians_and_is_told_in_words() {
        let points = [(1.0, 100.0), (100.0, 400.0)];
        let points = points.map(|(x, y)| Point { x, low: y / 2.0, median: y, high: y + 100.0 });
        let drawn = plot(points.to_vec()).draw().unwrap().finish();
        assert!(
            drawn.contains(r#"<polyline class="line s0" points="64.0,194.0 454.0,68.0"/>"#),
            "{drawn}"
        );
        assert!(drawn.contains("a &amp; b: at 1: 100.0 (50.0 to 200.0), at 100: 400.0"), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 2);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(plot(Vec::new()).draw().is_none());
    }

    #[test]
    fn of_many_points_the_line_is_enough() {
        let points = (0..100_u32).map(|x| Point::exact(f64::from(x), f64::from(x * x % 97 + 1)));
        let drawn = plot(points.collect()).draw().unwrap().finish();
        assert_eq!(drawn.matches("<circle").count(), 0);
        assert!(drawn.contains("a &amp; b: at 0: 1.00, at "), "{drawn}");
    }
}
