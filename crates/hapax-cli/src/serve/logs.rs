//! Where the log goes.

use std::io;

use tracing_subscriber::{EnvFilter, fmt};

use super::ServeError;
use crate::args::{LogArgs, LogFormat};

/// Logs to standard error from now on.
pub(crate) fn start(args: &LogArgs) -> Result<(), ServeError> {
    let filter = EnvFilter::try_new(&args.log)
        .map_err(|_| ServeError::LogFilter { filter: args.log.clone() })?;
    let log = fmt().with_env_filter(filter).with_writer(io::stderr);
    match args.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
