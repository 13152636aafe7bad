//! Saying what happens, on standard error: to people on a terminal, to programs elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use hapax::client::{PursuitEvent, Watch, journal::Name};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use tokio::time::Instant;

use super::{
    error::{CallExitCode, CallFailure},
    line::{CallLine, heard, millis},
};
use crate::table::harmless;

/// How often a terminal sees that time goes by.
const TICK: Duration = Duration::from_millis(100);

/// Whom to tell, and how.
pub(super) struct Reporter {
    how: How,
    start: Instant,
}

enum How {
    /// A line that changes, and above it what stays.
    Terminal(ProgressBar),
    /// One JSON object for each line.
    Json,
    /// Only what went wrong, in words.
    Quiet,
}

#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(flatten)]
    line: &'a CallLine<'a>,
    elapsed_ms: u64,
}

impl Reporter {
    pub(super) fn new(quiet: bool) -> Self {
        let how = match (quiet, io::stderr().is_terminal()) {
            (true, _) => How::Quiet,
            (false, false) => How::Json,
            (false, true) => {
                let bar = ProgressBar::new_spinner();
                bar.set_draw_target(ProgressDrawTarget::stderr());
                How::Terminal(bar)
            }
        };
        Self { how, start: Instant::now() }
    }

    pub(super) fn say(&self, line: &CallLine<'_>) {
        match &self.how {
            How::Terminal(bar) if line.passes() => {
                bar.enable_steady_tick(TICK);
                bar.set_message(harmless(&line.words()));
            }
            How::Terminal(bar) => {
                if line.is_grave() || matches!(line, CallLine::Concluded(_)) {
                    bar.finish_and_clear();
                }
                bar.suspend(|| print(&format!("hapax: {}", harmless(&line.words()))));
            }
            How::Json => {
                let stamped = Stamped { line, elapsed_ms: millis(self.start.elapsed()) };
                print(&serde_json::to_string(&stamped).unwrap_or_default());
            }
            How::Quiet if line.is_grave() => print(&format!("hapax: {}", harmless(&line.words()))),
            How::Quiet => {}
        }
    }

    /// Says why it could not be pursued, and with which code to exit.
    pub(super) fn failed(&self, failure: &CallFailure) -> CallExitCode {
        self.failed_for(None, failure)
    }

    pub(super) fn failed_for(&self, name: Option<&Name>, failure: &CallFailure) -> CallExitCode {
        let (name, error) = (name.map(Name::as_str), crate::sentence(failure));
        // What was typed wrong is typed by people, whatever they have connected.
        if failure.code() == CallExitCode::Usage {
            print(&format!("error: {}", harmless(&error)));
        } else {
            self.say(&CallLine::Failed { name, error });
        }
        failure.code()
    }

    /// Somebody who tells of every attempt.
    pub(super) fn watch(self: &Arc<Self>, name: Option<&Name>) -> Arc<dyn Watch> {
        Arc::new(Attempts { teller: Arc::clone(self), name: name.cloned() })
    }
}

struct Attempts {
    teller: Arc<Reporter>,
    name: Option<Name>,
}

impl Watch for Attempts {
    fn saw(&self, event: PursuitEvent<'_>) {
        let name = self.name.as_ref().map(Name::as_str);
        self.teller.say(&match event {
            PursuitEvent::Begun { attempt, limit } => {
                CallLine::Begun { name, attempt, limit_ms: millis(limit) }
            }
            PursuitEvent::Ended { attempt, result, status, error } => CallLine::Ended {
                name,
                attempt,
                heard: heard(result),
                status: status.map(|status| status.as_u16()),
                error: error.map(|error| crate::sentence(&**error)),
            },
            PursuitEvent::Pausing { attempt, pause } => {
                CallLine::Pausing { name, attempt, pause_ms: millis(pause) }
            }
        });
    }
}

fn print(line: &str) {
    // Nobody is left to be told when the terminal is gone.
    let _ = writeln!(io::stderr(), "{line}");
}
