//! Findings and figures as text.

use std::fmt::Write as _;

use super::{Findings, invalid};
use crate::{
    exam::Finding,
    rounds::{Figures, Row, Sample},
    ways::{Class, Way},
};

/// What one way does, a line for each question.
pub(super) fn exam(way: Way, findings: &[Finding]) -> String {
    let mut text = format!("\n{}\n", way.label());
    for finding in findings {
        let (question, verdict) = (finding.check.question(), finding.verdict());
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {question:<57} {verdict:<4} {}", finding.said);
    }
    text
}

/// What every way with this many connections costs.
pub(super) fn speed(connections: usize, rows: &[Row], findings: &Findings) -> String {
    let mut text = format!("\n{connections} connections\n");
    for class in Class::ALL {
        let of_class = |row: &&Row| row.way.class() == *class && row.connections == connections;
        let rows: Vec<&Row> = rows.iter().filter(of_class).collect();
        if !rows.is_empty() {
            text.push_str(&section(*class, &rows, findings));
        }
    }
    text
}

fn section(class: Class, rows: &[&Row], findings: &Findings) -> String {
    let mut text = format!(
        "\n{}\n{:<38}{:>9}{:>17}{:>8}{:>9}{:>14}{:>8}{:>11}{:>8}{:>14}{:>8}\n",
        class.title(),
        "",
        "new/s",
        "range",
        "x peer",
        "p99 ms",
        "CPU us+store",
        "x peer",
        "replays/s",
        "x peer",
        "CPU us+store",
        "x peer"
    );
    for row in rows {
        let new = Column { row, best: best(rows, findings, NEW), of: NEW };
        let replay = Column { row, best: best(rows, findings, REPLAY), of: REPLAY };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<38}{:>9}{:>17}{:>8}{:>9}{:>14}{:>8}{:>11}{:>8}{:>14}{:>8}",
            row.way.label(),
            number(new.median(|figures| figures.per_second)),
            new.range(),
            times(new.against_best(|figures| figures.per_second)),
            new.median(|figures| figures.p99_ms).map_or_else(String::new, |ms| format!("{ms:.1}")),
            new.cpu(),
            times(new.against_best(Figures::cpu_us)),
            number(replay.median(|figures| figures.per_second)),
            times(replay.against_best(|figures| figures.per_second)),
            replay.cpu(),
            times(replay.against_best(Figures::cpu_us)),
        );
        if let Some(why) = invalid(row, findings) {
            let _ = writeln!(text, "    INVALID: {why}");
        }
    }
    text
}

/// One kind of request.
type Kind = fn(&Sample) -> Option<Figures>;

const NEW: Kind = |sample| Some(sample.new);
const REPLAY: Kind = |sample| sample.replay;

/// The fastest peer that is as durable as ours; one that does the job, if there is any.
fn best<'a>(rows: &[&'a Row], findings: &Findings, of: Kind) -> Option<&'a Row> {
    let rate = |row: &Row| median(values(row, of, |figures| figures.per_second)).unwrap_or(0.0);
    let rank = |row: &Row| (invalid(row, findings).is_none(), rate(row));
    let peers = rows.iter().copied().filter(|row| row.way.is_measure());
    peers.max_by(|one, other| {
        let ((one_valid, one), (other_valid, other)) = (rank(one), rank(other));
        one_valid.cmp(&other_valid).then(one.total_cmp(&other))
    })
}

fn values(row: &Row, of: Kind, measure: fn(&Figures) -> f64) -> Vec<f64> {
    row.samples.iter().filter_map(of).map(|figures| measure(&figures)).collect()
}

/// One kind of request of one way, beside the best peer.
struct Column<'a> {
    row: &'a Row,
    best: Option<&'a Row>,
    of: Kind,
}

impl Column<'_> {
    fn median(&self, measure: fn(&Figures) -> f64) -> Option<f64> {
        median(values(self.row, self.of, measure))
    }

    fn range(&self) -> String {
        let values = values(self.row, self.of, |figures| figures.per_second);
        let (low, high) =
            (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        format!("{}-{}", number(low), number(high))
    }

    fn cpu(&self) -> String {
        let (server, store) =
            (self.median(|figures| figures.server_us), self.median(|figures| figures.store_us));
        server.map_or_else(String::new, |server| format!("{server:.1}+{:.1}", store.unwrap_or(0.0)))
    }

    /// How many times the best peer's, taken within each round, where both saw the same machine.
    fn against_best(&self, measure: fn(&Figures) -> f64) -> Option<f64> {
        let own = values(self.row, self.of, measure);
        let ratios = own.iter().zip(values(self.best?, self.of, measure));
        let ratios = ratios.map(|(own, theirs)| own / theirs);
        median(ratios.filter(|ratio| ratio.is_finite()).collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return Some(values[middle]);
    }
    Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.0}"))
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: Way, rates: &[f64], wrong: Option<&str>) -> Row {
        let sample = |per_second: &f64| Sample {
            new: Figures::at(*per_second),
            replay: None,
            invalid: wrong.map(str::to_owned),
        };
        Row { way, connections: 64, samples: rates.iter().map(sample).collect() }
    }

    #[test]
    fn a_peer_that_does_the_job_is_the_measure_even_if_another_is_faster() {
        let right = row(Way::IdempotentMemory, &[10.0, 20.0, 30.0], None);
        let wrong = row(Way::SessionsMemory, &[90.0, 90.0, 90.0], Some("ran twice"));
        let best = best(&[&right, &wrong], &Findings::new(), NEW).unwrap();
        assert_eq!(best.way, Way::IdempotentMemory);
    }

    #[test]
    fn a_round_is_compared_with_itself() {
        let ours = row(Way::HapaxMemory, &[20.0, 30.0, 80.0], None);
        let peer = row(Way::IdempotentMemory, &[10.0, 20.0, 40.0], None);
        let column = Column { row: &ours, best: Some(&peer), of: NEW };
        assert_eq!(column.against_best(|figures| figures.per_second), Some(2.0));
    }

    #[test]
    fn what_is_wrong_stands_below_its_row() {
        let rows = [row(Way::SessionsMemory, &[90.0], Some("ran twice"))];
        let text = speed(64, &rows, &Findings::new());
        assert!(text.ends_with("INVALID: ran twice\n"), "{text}");
        assert_eq!(speed(256, &rows, &Findings::new()), "\n256 connections\n");
    }
}
