//! How far a run is, and whether somebody wants it to end.

use std::{
    future::pending,
    io::{IsTerminal as _, Write as _, stderr},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};

use super::error::BenchError;

/// Where nobody watches a bar, a line is written no more often than this.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Says what is measured now: a bar on a terminal, lines elsewhere. Clones share it.
#[derive(Clone)]
pub(super) struct BenchProgress {
    bar: ProgressBar,
    began: Instant,
    is_terminal: bool,
    line: Arc<Mutex<ProgressLine>>,
    interrupted: watch::Receiver<bool>,
}

struct ProgressLine {
    bench: String,
    steps: u64,
    done: u64,
    written: Option<Instant>,
}

impl BenchProgress {
    /// Begins, and listens for what ends a program from here on.
    pub(super) fn start() -> Result<Self, BenchError> {
        let bar = ProgressBar::new(0);
        let template = "{prefix} {bar:30} {pos}/{len} {elapsed_precise} {msg}";
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(500));
        let line = ProgressLine { bench: String::new(), steps: 0, done: 0, written: None };
        Ok(Self {
            bar,
            began: Instant::now(),
            is_terminal: stderr().is_terminal(),
            line: Arc::new(Mutex::new(line)),
            interrupted: listen()?,
        })
    }

    /// Another bench begins.
    pub(super) fn bench(&self, name: String) {
        self.bar.set_prefix(name.clone());
        self.bar.set_length(0);
        self.bar.set_position(0);
        self.with_line(|line| {
            *line = ProgressLine { bench: name, steps: 0, done: 0, written: None }
        });
    }

    /// It will have so many more measurements.
    pub(super) fn expect(&self, steps: u64) {
        self.bar.inc_length(steps);
        self.with_line(|line| line.steps += steps);
    }

    /// Says which measurement begins; an error if the run is to end before it.
    pub(super) fn begin(&self, what: impl Into<String>) -> Result<(), BenchError> {
        if self.is_interrupted() {
            return Err(BenchError::CutShort);
        }
        let what = what.into();
        if !self.is_terminal {
            self.with_line(|line| line.write(&what, self.began));
        }
        self.bar.set_message(what);
        Ok(())
    }

    /// So many measurements are done.
    pub(super) fn inc(&self, steps: u64) {
        self.bar.inc(steps);
        self.with_line(|line| line.done += steps);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(super) fn is_interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// What the measurement comes to, or [`BenchError::CutShort`] as soon as somebody wants the run
    /// to end; then it is dropped, and with it what it started.
    pub(super) async fn unless_interrupted<T>(
        &self,
        measurement: impl Future<Output = Result<T, BenchError>>,
    ) -> Result<T, BenchError> {
        let mut interrupted = self.interrupted.clone();
        let interruption = async {
            if interrupted.wait_for(|is| *is).await.is_err() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            measured = measurement => measured,
            () = interruption => Err(BenchError::CutShort),
        }
    }

    fn with_line(&self, change: impl FnOnce(&mut ProgressLine)) {
        change(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ProgressLine {
    fn write(&mut self, what: &str, began: Instant) {
        if self.written.is_some_and(|written| written.elapsed() < BETWEEN_LINES) {
            return;
        }
        self.written = Some(Instant::now());
        let (Self { bench, steps, done, .. }, seconds) = (self, began.elapsed().as_secs());
        // Nobody may read along; the figures are what counts.
        let _ = writeln!(stderr(), "{bench} {done}/{steps}, {seconds} s: {what}");
    }
}

/// Becomes true with the first signal that asks this program to end. Those it started have process
/// groups of their own, and are stopped by whoever holds them.
fn listen() -> Result<watch::Receiver<bool>, BenchError> {
    let (tell, told) = watch::channel(false);
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(BenchError::Runtime)?;
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt()).map_err(BenchError::Signals)?;
    let terminate = signal(SignalKind::terminate()).map_err(BenchError::Signals)?;
    drop(entered);
    thread::spawn(move || {
        let (mut interrupt, mut terminate) = (interrupt, terminate);
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let _ = writeln!(stderr(), "stopping; what was measured is reported");
            // Nobody listens only when the run is over.
            let _ = tell.send(true);
            // Further signals change nothing: servers are being stopped.
            pending::<()>().await;
        });
    });
    Ok(told)
}
