//! `hapax verify`: whether an API is safe to retry, examined from outside.
//!
//! - `settings` is what was typed over what a file says; `request` makes an examination of it, with `body`,
//!   `headers` and whoever counts effects (`oracle`);
//! - `safety` refuses what must not be asked, `announcement` says what is going to be, and asks;
//! - `progress` tells what happens meanwhile, `report` what came of it;
//! - `interrupted_run` is the file in which a run waits to be gone on with;
//! - `replay` says by which command a probe is repeated;
//! - `proposal` makes settings of an OpenAPI document.
//!
//! What is examined how, and what that means, is all in `hapax-examine`.

mod announcement;
mod body;
mod count_by_sql;
mod error;
mod headers;
mod interrupted_run;
mod oracle;
mod progress;
mod proposal;
mod replay;
mod report;
mod request;
mod safety;
mod settings;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hapax_examine::{
    Examination, ExaminationExit, ExaminationMemory, ExaminationRecord, ProbeInterruption,
    ReportDocument,
};

use self::{error::VerifyError, interrupted_run::InterruptedRun, progress::VerifyProgress};
use crate::{
    args::{VerifyArgs, VerifySettings},
    shell::quoted,
    signals::{Signal, Signals},
};

const USAGE: u8 = 2;
const INCONCLUSIVE: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Examines, says what was found, and answers with the code to exit with.
pub(crate) fn run(args: &VerifyArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(Box::pin(perform(args))),
        Err(error) => Err(VerifyError::Runtime(error)),
    };
    ended.unwrap_or_else(|error| {
        error::tell(&error);
        ExitCode::from(USAGE)
    })
}

async fn perform(args: &VerifyArgs) -> Result<ExitCode, VerifyError> {
    if let Some(document) = &args.source.openapi {
        proposal::propose(args, document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let interrupted = args.source.resume.as_deref().map(InterruptedRun::read).transpose()?;
    let settings = settings::read(args, interrupted.as_ref())?;
    if let Some(run) = &interrupted {
        run.check(&settings)?;
    }
    let baseline = report::baseline(&settings)?;
    let afforded = request::examination(&settings, &args.consent, interrupted.as_ref()).await?;
    safety::check_effects(&afforded.examination)?;
    announcement::announce(&mut io::stderr().lock(), &afforded)?;
    let examination = afforded.examination;
    if !args.consent.yes {
        announcement::may_go_on(afforded.consent.is_at_home)?;
    }
    report::check_places(&settings)?;
    let run = VerifyRun {
        args,
        settings: &settings,
        examination: Arc::new(examination),
        earlier: interrupted.and_then(|run| run.report),
        baseline,
    };
    let ended = Box::pin(run.examine()).await?;
    if let VerifyEnd::Over(..) = ended {
        run.clean_up().await;
    }
    // Something was asked: whoever only hears that a file could not be written must not take it for nothing.
    Ok(run.conclude(ended).unwrap_or_else(|error| {
        error::tell(&error);
        ExitCode::from(INCONCLUSIVE)
    }))
}

/// An examination that was agreed to.
struct VerifyRun<'a> {
    args: &'a VerifyArgs,
    settings: &'a VerifySettings,
    examination: Arc<Examination>,
    /// What was found before it was interrupted.
    earlier: Option<ReportDocument>,
    /// What is compared with.
    baseline: Option<ReportDocument>,
}

/// How an examination ended.
enum VerifyEnd {
    /// By itself, or after somebody wanted it to end.
    Over(Result<Box<ExaminationRecord>, ProbeInterruption>, Option<Signal>),
    /// At once.
    Broken(Signal),
}

impl VerifyRun<'_> {
    /// Runs it to its end; the first signal lets the request at work end, the second nothing.
    async fn examine(&self) -> Result<VerifyEnd, VerifyError> {
        let mut signals = Signals::listen().map_err(VerifyError::Runtime)?;
        let progress = VerifyProgress::new(self.examination.outline().runs.len());
        let cancelled = Arc::new(AtomicBool::new(false));
        let examination = self.examination.clone();
        let running = examination.run(Vec::new(), cancelled.clone(), |event| progress.tell(&event));
        let mut running = Box::pin(running);
        let mut stopped = None;
        let ended = loop {
            tokio::select! {
                ended = &mut running => break VerifyEnd::Over(ended.map(Box::new), stopped),
                signal = signals.next() => {
                    if stopped.is_some() {
                        break VerifyEnd::Broken(signal);
                    }
                    stopped = Some(signal);
                    cancelled.store(true, Ordering::Relaxed);
                    progress.say("stops after the request at work; once more ends it at once");
                }
            }
        };
        progress.clear();
        Ok(ended)
    }

    /// Removes what was made, if somebody said how.
    async fn clean_up(&self) {
        let Some(hook) = &self.examination.hooks.clean_up else { return };
        if let Err(failed) = hook.run(&self.examination.wire, "cleans up", Duration::ZERO).await {
            say(&failed.to_string());
        }
    }

    /// Says what was found, and keeps what is left to do.
    fn conclude(&self, ended: VerifyEnd) -> Result<ExitCode, VerifyError> {
        let (ended, stopped) = match ended {
            VerifyEnd::Over(ended, stopped) => (ended, stopped),
            VerifyEnd::Broken(signal) => {
                say("ended at once: nothing is kept of this run, and nothing was cleaned up");
                return Ok(ExitCode::from(after(signal)));
            }
        };
        match (ended, stopped) {
            (Ok(record), stopped) => {
                let report = self.report(&record)?;
                let is_over = stopped.is_none();
                if !is_over || !record.memory.awaited.is_empty() {
                    let when =
                        if is_over { "when keys are about to be forgotten" } else { "any time" };
                    self.keep(Some(report.clone()), record.memory, when)?;
                }
                match stopped {
                    Some(signal) => Ok(ExitCode::from(after(signal))),
                    None => {
                        let exit = self.publish(&report)?;
                        Ok(ExitCode::from(exit.code()))
                    }
                }
            }
            (Err(_), Some(signal)) => {
                self.keep(self.earlier.clone(), self.examination.earlier.clone(), "any time")?;
                Ok(ExitCode::from(after(signal)))
            }
            (Err(interruption), None) => {
                say(&format!("not graded: {interruption}"));
                Ok(ExitCode::from(INCONCLUSIVE))
            }
        }
    }

    fn publish(&self, report: &ReportDocument) -> Result<ExaminationExit, VerifyError> {
        let file = self.args.source.config.as_deref();
        report::publish(self.settings, report, self.baseline.as_ref(), file)
    }

    /// What was found by now, and before it was interrupted.
    fn report(&self, record: &ExaminationRecord) -> Result<ReportDocument, VerifyError> {
        let command = replay::command(self.args, self.settings, &self.examination)?;
        let api = &self.examination.api;
        let report = ReportDocument::of(record, api, &report::when()).repeated_by(api, &command);
        match self.earlier.clone() {
            Some(earlier) => report.continuing(earlier).map_err(|source| {
                let path = self.args.source.resume.clone().unwrap_or_default();
                VerifyError::Report { path, source }
            }),
            None => Ok(report),
        }
    }

    /// Writes down what was done, and says how to go on.
    fn keep(
        &self,
        report: Option<ReportDocument>,
        memory: ExaminationMemory,
        when: &str,
    ) -> Result<(), VerifyError> {
        let seed = self.examination.seed;
        let path = self.args.source.resume.clone();
        let path = path.unwrap_or_else(|| interrupted_run::usual_path(seed));
        InterruptedRun::new(self.settings, seed, report, memory).write(&path)?;
        let path = quoted(&path.display().to_string());
        say(&format!("go on {when}: hapax verify --resume {path}"));
        Ok(())
    }
}

/// As shells have it.
fn after(signal: Signal) -> u8 {
    match signal {
        Signal::HangUp => 129,
        Signal::Interrupt => INTERRUPTED,
        Signal::Terminate => 143,
    }
}

/// Nobody is left to be told when the terminal is gone.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::table::harmless(text));
}
