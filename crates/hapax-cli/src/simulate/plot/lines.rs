//! How figures change along something.

use super::{Anchor, Drawing, Scale, Series, axis::Axis, colour, key, rule, text};
use crate::table::grouped;

const LEFT: f64 = 90.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 290.0;
const HEIGHT: f64 = 350.0;
const KEY_LEFT: f64 = RIGHT + 24.0;
const KEY_STEP: f64 = 22.0;

pub(super) fn draw((x, y): (&str, &str), scale: Scale, series: &[Series]) -> Drawing {
    let points = || series.iter().flat_map(|series| series.points.iter().copied());
    let across = Axis::new(Scale::Linear, points().map(|(x, _)| x), (LEFT, RIGHT));
    let up = Axis::new(scale, points().map(|(_, y)| y), (BOTTOM, TOP));

    let mut body = String::new();
    for tick in up.ticks() {
        let at = up.at(tick);
        body.push_str(&rule((LEFT, at), (RIGHT, at)));
        body.push_str(&text(LEFT - 8.0, at + 4.0, Anchor::End, &grouped(tick)));
    }
    for tick in across.ticks() {
        body.push_str(&text(across.at(tick), BOTTOM + 20.0, Anchor::Middle, &grouped(tick)));
    }
    body.push_str(&text(f64::midpoint(LEFT, RIGHT), BOTTOM + 42.0, Anchor::Middle, x));
    body.push_str(&text(LEFT - 8.0, TOP - 16.0, Anchor::End, y));
    for (at, series) in series.iter().enumerate() {
        let place = |&(x, y): &(f64, f64)| format!("{:.1},{:.1}", across.at(x), up.at(y));
        let places: Vec<_> = series.points.iter().map(place).collect();
        body.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\"/>\n",
            places.join(" "),
            colour(at)
        ));
        let below = f64::from(u32::try_from(at).unwrap_or(0)) * KEY_STEP;
        body.push_str(&key(KEY_LEFT, TOP + 10.0 + below, at, &series.name));
    }
    Drawing { body, height: HEIGHT }
}
