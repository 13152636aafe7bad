//! How far it is: a line that changes on a terminal, a line for each probe elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use hapax_examine::{ControlVerdict, ExaminationEvent, ProbeVerdict};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::table::harmless;

const TICK: Duration = Duration::from_millis(100);

/// Tells of each probe, on standard error.
pub(super) struct VerifyProgress {
    bar: Option<ProgressBar>,
}

impl VerifyProgress {
    /// For so many probes.
    pub(super) fn new(probes: usize) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = ProgressBar::new(u64::try_from(probes).unwrap_or(u64::MAX));
        bar.set_draw_target(ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(TICK);
        bar.set_message("learning how it behaves");
        Self { bar: Some(bar) }
    }

    /// What happens now.
    pub(super) fn tell(&self, event: &ExaminationEvent<'_>) {
        match event {
            ExaminationEvent::Controlled(control) => match &control.verdict {
                ControlVerdict::Holds(text) => self.say(&line(control.id, control.question, text)),
                // The report says it.
                ControlVerdict::Refuted(_) => {}
                ControlVerdict::Skipped(text) => {
                    self.say(&line(control.id, control.question, &format!("skipped: {text}")));
                }
            },
            ExaminationEvent::Begins(probe) => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{} {}", probe.id, probe.question));
                }
            }
            // What is left out was announced.
            ExaminationEvent::Ended(record) if !record.was_run => {}
            ExaminationEvent::Ended(record) => {
                let probe = record.probe;
                self.say(&line(probe.id, probe.name, &word(&record.verdict)));
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
            }
        }
    }

    /// Says something, above the line that changes.
    pub(super) fn say(&self, text: &str) {
        let text = harmless(text);
        // Nobody is left to be told when the terminal is gone.
        match &self.bar {
            Some(bar) => bar.suspend(|| drop(writeln!(io::stderr(), "{text}"))),
            None => drop(writeln!(io::stderr(), "{text}")),
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(id: &str, name: &str, text: &str) -> String {
    format!("{id} {name} ... {text}")
}

/// A verdict in a word, or with why there is none.
fn word(verdict: &ProbeVerdict) -> String {
    match verdict {
        ProbeVerdict::Pass { .. } => "pass".to_owned(),
        ProbeVerdict::Fail { .. } => "FAIL".to_owned(),
        ProbeVerdict::Inconclusive { reason } => format!("inconclusive: {reason}"),
    }
}
