//! How far it is: bars on a terminal, lines elsewhere.

use std::io::{self, IsTerminal, Write};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where people see what happens.
#[derive(Debug)]
pub(super) struct DemoProgress {
    bars: MultiProgress,
    is_terminal: bool,
}

/// How many payments are made at one place.
#[derive(Debug)]
pub(super) struct PaymentBar(ProgressBar);

impl DemoProgress {
    pub(super) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        let target =
            if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bars: MultiProgress::with_draw_target(target), is_terminal }
    }

    pub(super) fn bar(&self, name: &'static str, payments: usize) -> PaymentBar {
        let bar = ProgressBar::new(u64::try_from(payments).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("  {msg:14} {bar:30} {pos}/{len} payments");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(name);
        PaymentBar(self.bars.add(bar))
    }

    /// Says something, above the bars if there are any.
    pub(super) fn tell(&self, what: &str) {
        // Nobody is left to be told when the terminal is gone.
        let _ = if self.is_terminal {
            self.bars.println(what)
        } else {
            writeln!(io::stdout(), "{what}")
        };
    }

    /// Takes the bars away.
    pub(super) fn clear(&self) {
        // The same.
        let _ = self.bars.clear();
    }
}

impl PaymentBar {
    pub(super) fn one_more(&self) {
        self.0.inc(1);
    }

    pub(super) fn finish(&self) {
        self.0.finish();
    }
}
