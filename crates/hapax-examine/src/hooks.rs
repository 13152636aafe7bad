//! What users give so that more can be tried: how the server is killed, started, slowed, and made to fail.

use std::{fmt, time::Duration};

use crate::{
    ExamRequest, HttpAddress, ProbeInterruption, ProbeLog, Wire,
    shell::{excerpt, run_in_shell},
};

/// How long something that is done to the server may take.
const HOOK_PATIENCE: Duration = Duration::from_secs(60);
/// How slow the server is made where nobody says how slow.
const SLOW_BY_DEFAULT: Duration = Duration::from_millis(500);

/// Something that can be done to the server under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// A command for the shell.
    Command(String),
    /// A request without a body: `POST http://127.0.0.1:8080/_hooks/fail`.
    Request {
        /// The method.
        method: String,
        /// The URL.
        url: String,
    },
}

/// All that can be done to the server under test.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Kills the server at once, as SIGKILL does.
    pub kill: Option<Hook>,
    /// Starts it again, and ends once it has been told to start.
    pub start: Option<Hook>,
    /// Makes the next execution fail with a 5xx before it has its effect.
    pub fail_before: Option<Hook>,
    /// Makes the next execution fail with a 5xx after it has had its effect.
    pub fail_after: Option<Hook>,
    /// Makes every execution take as long as `slow_by`; `{milliseconds}` in it is replaced.
    pub slow: Option<Hook>,
    /// Ends that.
    pub fast: Option<Hook>,
    /// Runs after everything, to remove what was made.
    pub clean_up: Option<Hook>,
    /// How slow the server is made; half a second if it is zero.
    pub slow_by: Duration,
}

impl Hooks {
    /// All that are given, each with what it is for (`kills the server`).
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Hook)> {
        // Without `..`: whatever is run some day is looked at before.
        let Self { kill, start, fail_before, fail_after, slow, fast, clean_up, slow_by: _ } = self;
        let hooks = [
            ("kills the server", kill),
            ("starts the server", start),
            ("lets an execution fail before its effect", fail_before),
            ("lets an execution fail after its effect", fail_after),
            ("makes the server slow", slow),
            ("makes the server fast again", fast),
            ("cleans up", clean_up),
        ];
        hooks.into_iter().filter_map(|(purpose, hook)| Some((purpose, hook.as_ref()?)))
    }

    /// How slow the server is made by `slow`.
    pub fn slowness(&self) -> Duration {
        if self.slow_by.is_zero() { SLOW_BY_DEFAULT } else { self.slow_by }
    }
}

impl Hook {
    /// Does it, and says in one sentence why it could not be done: `purpose` is what it was for (`kills the server`).
    pub async fn run(
        &self,
        wire: &Wire,
        purpose: &str,
        milliseconds: Duration,
    ) -> Result<(), ProbeInterruption> {
        let number = milliseconds.as_millis().to_string();
        let done = match self {
            Self::Command(command) => {
                let command = command.replace("{milliseconds}", &number);
                run_in_shell(&command, HOOK_PATIENCE).await.map(|_| ())
            }
            Self::Request { method, url } => {
                request(wire, method, &url.replace("{milliseconds}", &number)).await
            }
        };
        done.map_err(|why| ProbeInterruption::Hook(format!("what {purpose} failed: {why}")))
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{command}`"),
            Self::Request { method, url } => write!(f, "`{method} {url}`"),
        }
    }
}

async fn request(wire: &Wire, method: &str, url: &str) -> Result<(), String> {
    let (address, path) = HttpAddress::parse(url).map_err(|error| error.to_string())?;
    let request = ExamRequest { method: method.to_owned(), ..ExamRequest::get(&path, Vec::new()) };
    // What is done to the server is no evidence against it.
    let log = ProbeLog::begin();
    let exchange = wire.ask(&log, "hook", &address, &request, HOOK_PATIENCE).await;
    match exchange.answer() {
        Some(answer) if answer.is_success() => Ok(()),
        Some(answer) => {
            let said = excerpt(&String::from_utf8_lossy(&answer.body));
            Err(format!("{method} {url} was answered with {}: {said}", answer.status))
        }
        None => Err(format!("{method} {url}: {}", exchange.end.describe())),
    }
}
