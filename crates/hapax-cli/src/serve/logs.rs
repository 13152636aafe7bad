//! Where the log goes, and what the program itself says.

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, IsTerminal, Write},
    panic,
    process::ExitCode,
    thread,
};

use tracing::{Event, Subscriber, dispatcher};
use tracing_subscriber::{
    EnvFilter,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::{Format, Full, Writer},
    },
    registry::LookupSpan,
};

use super::ServeError;
use crate::args::{LogArgs, LogFormat};

/// The target of what the program says about itself, whatever the filter says.
const SAID: &str = "hapax::program";

/// Logs to standard error from now on: in colours to a terminal, one JSON object on each line if told
/// so, what the program says about itself included.
pub(crate) fn start(args: &LogArgs) -> Result<(), ServeError> {
    let no_filter = || ServeError::LogFilter { filter: args.log.clone() };
    let given = EnvFilter::try_new(&args.log).map_err(|_| no_filter());
    let said = format!("{SAID}=info").parse().map_err(|_| no_filter())?;
    // One that cannot be used is told in the form that was asked for, too.
    let (filter, refused) = match given {
        Ok(filter) => (filter, Ok(())),
        Err(refusal) => (EnvFilter::default(), Err(refusal)),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter.add_directive(said))
        .with_writer(io::stderr);
    match args.log_format {
        LogFormat::Text => {
            let is_plain = env::var_os("NO_COLOR").is_some_and(|said| !said.is_empty());
            let log = log.with_ansi(io::stderr().is_terminal() && !is_plain);
            log.event_format(ForPeople(Format::default())).init();
        }
        LogFormat::Json => {
            log.json().init();
            panic::set_hook(Box::new(log_panic));
        }
    }
    refused
}

/// Says in the log that a thread panicked, where others write lines of their own to standard error.
fn log_panic(panicked: &panic::PanicHookInfo<'_>) {
    let message = panicked.payload_as_str().unwrap_or("a panic without words");
    let at = panicked.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    tracing::error!(target: SAID, at, thread, "panicked: {message}");
}

/// Tells why arguments mean nothing, as one object of JSON if the log was to be written so.
pub(crate) fn refuse_arguments(refused: &clap::Error) -> ExitCode {
    let is_for_programs = refused.use_stderr() && wants_json(env::args_os());
    if !is_for_programs {
        // Nobody is left to be told when the terminal is gone.
        let _ = refused.print();
    } else if start(&LogArgs { log: "warn".to_owned(), log_format: LogFormat::Json }).is_ok() {
        fail(refused.render().to_string().trim_end());
    }
    ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(u8::MAX))
}

/// Whether these arguments, or the environment, ask for a log in JSON.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<_> = args.collect();
    let flag = args.iter().rposition(|arg| arg.to_string_lossy().starts_with("--log-format"));
    match flag.map(|at| (args[at].to_string_lossy(), args.get(at + 1))) {
        Some((flag, next)) => {
            flag == "--log-format=json"
                || flag == "--log-format" && next.is_some_and(|next| next == "json")
        }
        None => env::var("HAPAX_LOG_FORMAT").is_ok_and(|format| format == "json"),
    }
}

/// Tells whoever started the program.
pub(crate) fn say(what: &str) {
    tracing::info!(target: SAID, "{what}");
}

/// Tells why the program ends, or a part of it.
pub(crate) fn fail(what: &str) {
    if dispatcher::has_been_set() {
        tracing::error!(target: SAID, "{what}");
    } else {
        // Nobody is left to be told when the terminal is gone.
        let _ = writeln!(io::stderr(), "hapax: {what}");
    }
}

/// Events as lines of a log; what the program says about itself as people read it.
struct ForPeople(Format<Full>);

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != SAID {
            return self.0.format_event(context, writer, event);
        }
        let mut fields = FormattedFields::<N>::new(String::new());
        context.format_fields(fields.as_writer(), event)?;
        writeln!(writer, "hapax: {fields}")
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const PANICS: &str = "HAPAX_TEST_PANICS";

    #[test]
    fn a_panic_is_a_line_of_the_log() {
        if env::var_os(PANICS).is_some() {
            start(&LogArgs { log: "warn".to_owned(), log_format: LogFormat::Json }).unwrap();
            panic!("the sky\nfell");
        }
        // In a process of its own, as its standard error is what is looked at.
        let name = "serve::logs::tests::a_panic_is_a_line_of_the_log";
        let output = Command::new(env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(PANICS, "1")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [line] = &lines[..] else { panic!("one line: {said}") };
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["fields"]["message"], "panicked: the sky\nfell");
        assert!(line["fields"]["at"].as_str().unwrap().contains("logs.rs"), "{line}");
    }
}
