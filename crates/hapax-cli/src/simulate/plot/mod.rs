//! Plots, drawn by hand: a few lines, bars and words of SVG.

mod axis;
mod bars;
mod lines;

/// What can be drawn.
pub(super) enum Chart {
    /// How figures change along something.
    Lines {
        title: &'static str,
        x: &'static str,
        y: &'static str,
        scale: Scale,
        series: Vec<Series>,
    },
    /// Figures side by side, for each of some ways.
    Bars {
        title: &'static str,
        /// What the figures of each way are, in order.
        figures: Vec<&'static str>,
        ways: Vec<(String, Vec<f64>)>,
    },
}

/// How far apart figures are drawn.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Linear,
    /// Equal ratios are equally far apart.
    Log,
}

/// One line.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const TITLE_HEIGHT: f64 = 40.0;
const FONT: &str = "font-family=\"system-ui,sans-serif\" font-size=\"13\"";
const INK: &str = "#1f2328";
const GRID: &str = "#d8dee4";
/// Told apart by people who do not see all colours.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#56b4e9", "#1f2328"];

/// The charts in one drawing, one below the other.
pub(super) fn svg(charts: &[&Chart]) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for chart in charts {
        let (drawing, height) = match chart {
            Chart::Lines { title, x, y, scale, series } => {
                titled(title, &lines::draw((x, y), *scale, series))
            }
            Chart::Bars { title, figures, ways } => titled(title, &bars::draw(figures, ways)),
        };
        body.push_str(&format!("<g transform=\"translate(0,{top:.0})\">\n{drawing}</g>\n"));
        top += height;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {top:.0}\" \
         width=\"{WIDTH:.0}\" height=\"{top:.0}\" {FONT} fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Text as it may stand in a document.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A drawing without its title, and how high it is.
struct Drawing {
    body: String,
    height: f64,
}

fn titled(title: &str, drawing: &Drawing) -> (String, f64) {
    let title = escaped(title);
    let body = format!(
        "<text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{title}</text>\n\
         <g transform=\"translate(0,{TITLE_HEIGHT})\">\n{}</g>\n",
        drawing.body
    );
    (body, drawing.height + TITLE_HEIGHT)
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// Where a word ends or begins, or what it stands in the middle of.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

fn text(x: f64, y: f64, anchor: Anchor, words: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let words = escaped(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

fn rule((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{GRID}\"/>\n"
    )
}

/// A square of the colour, and what it stands for.
fn key(x: f64, y: f64, at: usize, name: &str) -> String {
    let square = format!(
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/>\n",
        y - 10.0,
        colour(at)
    );
    square + &text(x + 18.0, y, Anchor::Start, name)
}
