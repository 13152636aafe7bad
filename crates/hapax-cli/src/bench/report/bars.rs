//! Ratios as bars: from 1, where both ways are the same, to the median, with the range across it.

use super::{
    axis::{Span, short},
    plot::Scale,
    svg::{Anchor, At, Svg, WIDTH},
};
use crate::bench::figures::{Claim, Spread, Target, number};

const ROW: f64 = 40.0;
const HEAD: f64 = 22.0;
const BAR: f64 = 14.0;
const MARGIN: f64 = 8.0;
/// Where the axis begins, with room for half a mark's text before it.
const LEFT: f64 = 20.0;
/// Room for the value beside a bar.
const VALUE: f64 = 64.0;

/// One chart of all claims that are ratios; `None` if there are none.
pub(super) fn draw(title: &str, claims: &[Claim]) -> Option<String> {
    let ratios: Vec<&Claim> = claims.iter().filter(|claim| claim.unit == "x").collect();
    let values = ratios.iter().flat_map(|claim| {
        let Spread { median, min, max } = claim.measured;
        [median, min, max, bound(claim).unwrap_or(1.0)]
    });
    let span =
        Span::over(values.chain([1.0]), Scale::Log).filter(|_| !ratios.is_empty())?.rounded();
    let said: Vec<String> = ratios.iter().map(ToString::to_string).collect();
    let height = HEAD + ROW * f64::from(u16::try_from(ratios.len()).unwrap_or(u16::MAX)) + MARGIN;
    let mut svg = Svg::new(height, &format!("Ratios: {title}"), &said.join("; "));
    let x = |value: f64| Some(LEFT + span.place(value)? * (WIDTH - VALUE - MARGIN - LEFT));
    for tick in span.ticks() {
        let Some(at) = x(tick) else { continue };
        let class = if (tick - 1.0).abs() < 1e-9 { "base" } else { "grid" };
        svg.line(class, At(at, HEAD - 4.0), At(at, height - MARGIN));
        svg.text("tick", Anchor::Middle, At(at, HEAD - 9.0), &format!("{}x", short(tick)));
    }
    let mut top = HEAD;
    for claim in ratios {
        row(&mut svg, claim, top, &x);
        top += ROW;
    }
    Some(svg.finish())
}

fn row(svg: &mut Svg, claim: &Claim, top: f64, x: &impl Fn(f64) -> Option<f64>) {
    let Spread { median, min, max } = claim.measured;
    svg.text("label", Anchor::Start, At(MARGIN, top + 14.0), &claim.what);
    let bar_top = top + 20.0;
    let middle = bar_top + BAR / 2.0;
    let class = match claim.met() {
        Some(true) => "bar met",
        Some(false) => "bar unmet",
        None => "bar",
    };
    if let (Some(one), Some(end)) = (x(1.0), x(median)) {
        let width = (one - end).abs().max(1.0);
        svg.rect(class, At(one.min(end), bar_top), At(width, BAR));
    }
    if let (Some(low), Some(high)) = (x(min), x(max)) {
        svg.line("whisker", At(low, middle), At(high, middle));
        for end in [low, high] {
            svg.line("whisker", At(end, middle - 4.0), At(end, middle + 4.0));
        }
    }
    if let Some(at) = bound(claim).and_then(x) {
        svg.line("target", At(at, bar_top - 3.0), At(at, bar_top + BAR + 3.0));
    }
    let value = format!("{}x", number(median));
    svg.text("value", Anchor::End, At(WIDTH - MARGIN, middle + 4.0), &value);
}

fn bound(claim: &Claim) -> Option<f64> {
    claim.target.map(|target| match target {
        Target::AtLeast(bound) | Target::AtMost(bound) => bound,
    })
}
