//! What happened when, as a picture: a lane for each exchange, and lines for what was done in between.

use super::{
    document::{EndDocument, ExchangeDocument, ProbeNoteDocument},
    summary::micros_text,
    text::{markup, shortened},
};

/// Most lanes of a picture.
const LANES_MAX: usize = 24;
/// Most notes of a picture.
const NOTES_MAX: usize = 8;
/// Notes that are further away than all of the picture is long, or than this, belong to something else.
const NEAR_MICROS: u64 = 100_000;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 650.0;
const LANE: f64 = 24.0;
const TOP: f64 = 22.0;
const LINE: f64 = 18.0;
const LABEL_CHARS: usize = 27;
const END_CHARS: usize = 28;
const NOTE_CHARS: usize = 110;
const TICKS: u32 = 4;

/// A picture of these exchanges, in the order in which they began; empty if there is none.
pub(super) fn timeline(exchanges: &[&ExchangeDocument], notes: &[ProbeNoteDocument]) -> String {
    let lanes = exchanges.get(..exchanges.len().min(LANES_MAX)).unwrap_or_default();
    let (Some(begin), Some(end)) = (
        lanes.iter().map(|lane| lane.began_micros).min(),
        lanes.iter().map(|lane| lane.ended_micros).max(),
    ) else {
        return String::new();
    };
    let notes = notes_near(notes, begin, end);
    let times = notes.iter().map(|note| note.at_micros);
    let scale = TimelineScale {
        begin: times.clone().min().map_or(begin, |at| at.min(begin)),
        end: times.max().map_or(end, |at| at.max(end)).max(begin + 1),
    };
    let lanes_end = TOP + LANE * number(lanes.len());
    let mut shapes = together(&scale, lanes, lanes_end);
    shapes.push_str(&axis(&scale, lanes_end));
    for (at, note) in notes.iter().enumerate() {
        shapes.push_str(&note_line(&scale, at + 1, note, lanes_end));
    }
    for (at, lane) in lanes.iter().enumerate() {
        shapes.push_str(&lane_shapes(&scale, lane, TOP + LANE * (number(at) + 0.5)));
    }
    let mut y = lanes_end + 2.0 * LINE;
    for (at, note) in notes.iter().enumerate() {
        y += LINE;
        let text = format!("{} {}: {}", at + 1, offset(&scale, note.at_micros), note.text);
        shapes.push_str(&text_at("note", 4.0, y, "start", &shortened(&text, NOTE_CHARS)));
    }
    if exchanges.len() > lanes.len() {
        y += LINE;
        let more = format!("and {} exchanges more", exchanges.len() - lanes.len());
        shapes.push_str(&text_at("soft", 4.0, y, "start", &more));
    }
    let (height, described) = (y + 8.0, markup(&description(lanes)));
    format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <title>What happened when</title>\n<desc>{described}</desc>\n{shapes}</svg>\n"
    )
}

/// Whether a note says that the server was killed.
fn is_kill(note: &ProbeNoteDocument) -> bool {
    note.text.contains("server was killed")
}

/// The notes that belong to what happened between these times, kills before others.
fn notes_near(notes: &[ProbeNoteDocument], begin: u64, end: u64) -> Vec<&ProbeNoteDocument> {
    let near = (end - begin).max(NEAR_MICROS);
    let is_near = |note: &&ProbeNoteDocument| {
        (begin.saturating_sub(near)..=end.saturating_add(near)).contains(&note.at_micros)
    };
    let mut found: Vec<_> = notes.iter().filter(is_near).collect();
    found.sort_by_key(|note| !is_kill(note));
    found.truncate(NOTES_MAX);
    found.sort_by_key(|note| note.at_micros);
    found
}

struct TimelineScale {
    begin: u64,
    end: u64,
}

impl TimelineScale {
    fn x(&self, micros: u64) -> f64 {
        let since = micros.saturating_sub(self.begin) as f64;
        LEFT + since / (self.end - self.begin) as f64 * (RIGHT - LEFT)
    }
}

fn number(count: usize) -> f64 {
    count as f64
}

/// Since the beginning of the picture.
fn offset(scale: &TimelineScale, micros: u64) -> String {
    micros_text(micros.saturating_sub(scale.begin))
}

/// A band over the time in which the first two of these that met were both with the server.
fn together(scale: &TimelineScale, lanes: &[&ExchangeDocument], lanes_end: f64) -> String {
    let mut spans: Vec<_> = lanes
        .iter()
        .filter_map(|lane| {
            Some((lane.sent_micros?, lane.answered_micros.unwrap_or(lane.ended_micros)))
        })
        .collect();
    spans.sort_unstable();
    let met = spans.windows(2).find_map(|pair| match pair {
        [(_, until), (from, later)] if from < until => Some((*from, *until.min(later))),
        _ => None,
    });
    let Some((from, until)) = met else { return String::new() };
    let (left, right) = (scale.x(from), scale.x(until));
    let (width, height) = ((right - left).max(1.5), lanes_end - TOP);
    format!(
        "<rect class=\"together\" x=\"{left:.1}\" y=\"{TOP:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>\n"
    )
}

fn axis(scale: &TimelineScale, lanes_end: f64) -> String {
    let length = scale.end - scale.begin;
    let mut shapes = String::new();
    for tick in 0..=TICKS {
        let at = scale.begin + length * u64::from(tick) / u64::from(TICKS);
        let x = scale.x(at);
        shapes.push_str(&line("grid", (x, TOP), (x, lanes_end)));
        shapes.push_str(&text_at("soft", x, lanes_end + LINE, "middle", &offset(scale, at)));
    }
    shapes
}

fn note_line(
    scale: &TimelineScale,
    number: usize,
    note: &ProbeNoteDocument,
    lanes_end: f64,
) -> String {
    let x = scale.x(note.at_micros);
    let class = if is_kill(note) { "kill" } else { "done" };
    let shape = line(class, (x, TOP - 4.0), (x, lanes_end + 4.0));
    shape + &text_at(class, x, TOP - 8.0, "middle", &number.to_string())
}

fn lane_shapes(scale: &TimelineScale, lane: &ExchangeDocument, y: f64) -> String {
    let (began, ended) = (scale.x(lane.began_micros), scale.x(lane.ended_micros));
    // What took no time is seen too.
    let ended = ended.max(began + 1.5);
    let label = format!("#{} {}", lane.number, lane.label);
    let mut shapes = text_at("label", LEFT - 10.0, y + 4.0, "end", &shortened(&label, LABEL_CHARS));
    shapes.push_str(&line("wait", (began, y), (ended, y)));
    let sent = lane.sent_micros.map(|at| scale.x(at).clamp(began, ended));
    if let Some(sent) = sent {
        shapes.push_str(&line("send", (began, y), (sent.max(began + 1.5), y)));
        shapes.push_str(&line("sent", (sent, y - 6.0), (sent, y + 6.0)));
    }
    let is_good = matches!(&lane.end, EndDocument::Answered { status, .. } if *status < 500);
    let class = if is_good { "answer" } else { "trouble" };
    if let Some(answered) = lane.answered_micros.map(|at| scale.x(at).clamp(began, ended)) {
        shapes.push_str(&line(class, (answered, y), (ended.max(answered + 1.5), y)));
        shapes.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{answered:.1}\" cy=\"{y:.1}\" r=\"4\"/>\n"
        ));
    }
    if lane.cut.is_some() {
        let (left, right) = (ended - 5.0, ended + 5.0);
        shapes.push_str(&line("cut", (left, y - 5.0), (right, y + 5.0)));
        shapes.push_str(&line("cut", (left, y + 5.0), (right, y - 5.0)));
    }
    let end = shortened(&lane.outcome(), END_CHARS);
    let class = if is_good { "end" } else { "end trouble" };
    shapes + &text_at(class, RIGHT + 12.0, y + 4.0, "start", &end)
}

/// For those who do not see it.
fn description(lanes: &[&ExchangeDocument]) -> String {
    let lanes = lanes.iter().map(|lane| {
        let (number, label, end) = (lane.number, &lane.label, lane.outcome());
        let (began, ended) = (micros_text(lane.began_micros), micros_text(lane.ended_micros));
        format!("#{number} {label} from {began} to {ended}: {end}")
    });
    lanes.collect::<Vec<_>>().join("; ")
}

fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
    )
}

fn text_at(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = markup(text);
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n"
    )
}
