//! Figures side by side. The scale is logarithmic: ratios are what is compared.

use super::{Anchor, Drawing, Scale, axis::Axis, colour, key, rule, text};

const LEFT: f64 = 230.0;
const RIGHT: f64 = 780.0;
const KEYS_HEIGHT: f64 = 28.0;
const KEY_STEP: f64 = 170.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;
const FOOT: f64 = 36.0;

pub(super) fn draw(figures: &[&str], ways: &[(String, Vec<f64>)]) -> Drawing {
    let axis = Axis::new(
        Scale::Log,
        ways.iter().flat_map(|(_, bars)| bars.iter().copied()),
        (LEFT, RIGHT),
    );
    let bars = f64::from(u32::try_from(figures.len()).unwrap_or(0));
    let step = bars * BAR + GAP;
    let bottom = KEYS_HEIGHT + step * f64::from(u32::try_from(ways.len()).unwrap_or(0));

    let mut body = String::new();
    let mut left = LEFT;
    for (at, name) in figures.iter().enumerate() {
        body.push_str(&key(left, 12.0, at, name));
        left += KEY_STEP;
    }
    for tick in axis.ticks() {
        let at = axis.at(tick);
        body.push_str(&rule((at, KEYS_HEIGHT), (at, bottom)));
        body.push_str(&text(at, bottom + 18.0, Anchor::Middle, &figure(tick)));
    }
    let mut top = KEYS_HEIGHT + GAP / 2.0;
    for (name, values) in ways {
        body.push_str(&text(LEFT - 10.0, top + bars * BAR / 2.0 + 4.0, Anchor::End, name));
        for (at, value) in values.iter().enumerate() {
            body.push_str(&bar(&axis, top, at, *value));
            top += BAR;
        }
        top += GAP;
    }
    Drawing { body, height: bottom + FOOT }
}

fn bar(axis: &Axis, top: f64, at: usize, value: f64) -> String {
    let end = axis.at(value);
    let bar = format!(
        "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>\n",
        (end - LEFT).max(1.0),
        BAR - 1.0,
        colour(at)
    );
    bar + &text(end + 6.0, top + 10.5, Anchor::Start, &figure(value))
}

fn figure(value: f64) -> String {
    let decimals = match value {
        10.0.. => 0,
        0.01.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
