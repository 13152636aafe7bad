//! Where the log goes, and what the program itself says.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
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
    let filter = EnvFilter::try_new(&args.log).map_err(|_| no_filter())?;
    let said = format!("{SAID}=info").parse().map_err(|_| no_filter())?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter.add_directive(said))
        .with_writer(io::stderr);
    match args.log_format {
        LogFormat::Text => {
            let is_plain = std::env::var_os("NO_COLOR").is_some_and(|said| !said.is_empty());
            let log = log.with_ansi(io::stderr().is_terminal() && !is_plain);
            log.event_format(ForPeople(Format::default())).init();
        }
        LogFormat::Json => log.json().init(),
    }
    Ok(())
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
