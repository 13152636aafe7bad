//! Drawings as text: the few shapes a chart needs, styled by the classes of the page.

use std::fmt::{Display, Write as _};

/// A drawing that fits the width it is given.
#[derive(Debug)]
pub struct Svg {
    height: f64,
    title: String,
    description: String,
    shapes: String,
}

/// How wide every drawing is, in its own units.
pub(super) const WIDTH: f64 = 480.0;

/// Looks by number that differ; more begin again.
pub(super) const LOOKS: usize = 8;

/// Room for a title over a drawing.
const TITLE: f64 = 36.0;

/// How drawings look, in light and in dark.
pub(crate) const CSS: &str = include_str!("drawing.css");

#[derive(Debug, Clone, Copy)]
pub(super) struct At(pub(super) f64, pub(super) f64);

#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty one, with what a reader is told who does not see it.
    pub(super) fn new(height: f64, title: &str, description: &str) -> Self {
        let (title, description) = (title.to_owned(), description.to_owned());
        Self { height, title, description, shapes: String::new() }
    }

    /// What it shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn line(&mut self, class: &str, At(x1, y1): At, At(x2, y2): At) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    pub(super) fn rect(&mut self, class: &str, At(x, y): At, At(width, height): At) {
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    /// A mark that says what it stands for.
    pub(super) fn dot(&mut self, class: &str, At(x, y): At, says: &str) {
        let says = escape(says);
        self.push(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3"><title>{says}</title></circle>"#
        ));
    }

    pub(super) fn polyline(&mut self, class: &str, places: &[At]) {
        let places = joined(places);
        self.push(format_args!(r#"<polyline class="{class}" points="{places}"/>"#));
    }

    pub(super) fn polygon(&mut self, class: &str, places: &[At]) {
        let places = joined(places);
        self.push(format_args!(r#"<polygon class="{class}" points="{places}"/>"#));
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, At(x, y): At, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// As a part of a page, which brings the looks.
    pub fn finish(&self) -> String {
        format!("{}{}</svg>\n", opening(self.height), self.content())
    }

    /// As a file of its own, with its own looks.
    pub fn alone(&self) -> String {
        format!("{}{}{}</svg>\n", opening(self.height), looks(), self.content())
    }

    fn content(&self) -> String {
        let (title, description) = (escape(&self.title), escape(&self.description));
        format!("<title>{title}</title>\n<desc>{description}</desc>\n{}", self.shapes)
    }

    fn push(&mut self, shape: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.shapes, "{shape}");
    }
}

/// Drawings below each other, each under its title, in one file.
pub fn sheet<'a>(drawings: impl IntoIterator<Item = &'a Svg>) -> String {
    let mut parts = String::new();
    let mut top = 0.0;
    for drawing in drawings {
        let (title, content) = (escape(&drawing.title), drawing.content());
        let (title_at, content_at) = (top + TITLE - 10.0, top + TITLE);
        parts.push_str(&format!(
            "<text class=\"title\" x=\"4\" y=\"{title_at:.0}\">{title}</text>\n\
             <g role=\"img\" transform=\"translate(0,{content_at:.0})\">\n{content}</g>\n"
        ));
        top += TITLE + drawing.height;
    }
    format!("{}{}{parts}</svg>\n", opening(top), looks())
}

fn opening(height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n"
    )
}

fn looks() -> String {
    format!("<style>\nsvg {{ background: var(--card); }}\n{CSS}</style>\n")
}

fn joined(places: &[At]) -> String {
    let places = places.iter().map(|At(x, y)| format!("{x:.1},{y:.1}"));
    places.collect::<Vec<_>>().join(" ")
}

/// Text that stays text wherever it stands in a page.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char if char.is_control() && char != '\n' => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{1b}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }

    #[test]
    fn a_drawing_of_its_own_brings_its_looks() {
        let drawn = Svg::new(10.0, "t", "d").alone();
        assert!(drawn.starts_with("<svg viewBox=\"0 0 480 10\""), "{drawn}");
        let (style, title) =
            (drawn.find("<style>").unwrap(), drawn.find("<title>t</title>").unwrap());
        assert!(style < title && drawn.contains(".s0 { stroke"), "{drawn}");
    }

    #[test]
    fn a_drawing_tells_what_it_shows() {
        let mut svg = Svg::new(10.0, "a < b", "two lines");
        svg.line("grid", At(0.0, 0.04), At(1.0, 2.0));
        svg.text("tick", Anchor::End, At(1.0, 2.0), "5 & 6");
        assert_eq!(
            svg.finish(),
            "<svg viewBox=\"0 0 480 10\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title>a &lt; b</title>\n<desc>two lines</desc>\n\
             <line class=\"grid\" x1=\"0.0\" y1=\"0.0\" x2=\"1.0\" y2=\"2.0\"/>\n\
             <text class=\"tick\" x=\"1.0\" y=\"2.0\" text-anchor=\"end\">5 &amp; 6</text>\n</svg>\n"
        );
    }

    #[test]
    fn a_sheet_has_its_drawings_below_each_other_under_their_titles() {
        let sheet = sheet(&[Svg::new(10.0, "one", "d"), Svg::new(20.0, "two", "d")]);
        assert!(sheet.starts_with("<svg viewBox=\"0 0 480 102\""), "{sheet}");
        for part in [
            "<text class=\"title\" x=\"4\" y=\"26\">one</text>\n<g role=\"img\" transform=\"translate(0,36)\">",
            "<text class=\"title\" x=\"4\" y=\"72\">two</text>\n<g role=\"img\" transform=\"translate(0,82)\">",
        ] {
            assert!(sheet.contains(part), "no {part} in\n{sheet}");
        }
        assert_eq!((sheet.matches("<svg").count(), sheet.matches("<style>").count()), (1, 1));
    }
}
