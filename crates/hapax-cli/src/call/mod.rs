//! `hapax call`: a request that is sent until it is answered, whatever happens meanwhile.
//!
//! - `request` is what to send, put together from what was typed; `journal_file` is where the
//!   journal is;
//! - `send` sends it, `resume` finishes what was left, `patience` waits for other owners;
//! - `reporter` says what happens, `line` in which words; `answer` prints what came back;
//! - `journal_commands` lists, shows and forgets; `error` says what went wrong and with which code
//!   to exit.

mod answer;
mod error;
mod journal_commands;
mod journal_file;
mod line;
mod patience;
mod reporter;
mod request;
mod resume;
mod send;

use std::{process::ExitCode, sync::Arc};

use hapax::{
    client::{Client, ClientBuilder, RetryOptions},
    limits::RETRY_ATTEMPTS_MAX,
    retry::Schedule,
};

use self::{
    error::{CallExitCode, CallFailure},
    journal_file::JournalFile,
    reporter::Reporter,
};
use crate::args::CallArgs;

/// Does what was typed, and answers with the code to exit with.
pub(crate) fn run(args: &CallArgs) -> ExitCode {
    let teller = Arc::new(Reporter::new(args.output.quiet));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(perform(args, &teller)),
        Err(error) => Err(CallFailure::Runtime(error)),
    };
    ended.unwrap_or_else(|failure| teller.failed(&failure)).into()
}

async fn perform(args: &CallArgs, teller: &Arc<Reporter>) -> Result<CallExitCode, CallFailure> {
    let task = &args.task;
    if task.list {
        return journal_commands::list(&JournalFile::of(args)?, wants_json(args)?).await;
    }
    if let Some(name) = &task.show {
        return journal_commands::show(&JournalFile::of(args)?, name, wants_json(args)?).await;
    }
    if let Some(name) = &task.forget {
        return journal_commands::forget(&JournalFile::of(args)?, name, task.force).await;
    }
    match task.resume.as_deref() {
        Some([name, ..]) => resume::one(args, name, teller).await,
        Some([]) => resume::all(args, teller).await,
        None => send::send(args, teller).await,
    }
}

/// Whether `--json` asks for the answer in JSON, rather than for JSON to be sent.
fn wants_json(args: &CallArgs) -> Result<bool, CallFailure> {
    match args.request.json.as_deref() {
        None => Ok(false),
        Some([]) => Ok(true),
        Some([_, ..]) => Err(CallFailure::JsonUnexpected),
    }
}

/// A client that tries as often as was asked for.
fn client(args: &CallArgs) -> Result<ClientBuilder, CallFailure> {
    let backoff = Schedule::default().backoff();
    let attempts = args.pace.attempts.unwrap_or(RETRY_ATTEMPTS_MAX);
    let retry = RetryOptions {
        schedule: Schedule::new(backoff, attempts)?,
        attempt_timeout: args.pace.attempt_timeout,
        ..RetryOptions::default()
    };
    let agent = concat!("hapax-call/", env!("CARGO_PKG_VERSION"));
    Ok(Client::builder().retry(retry).user_agent(agent))
}
