//! `hapax report`: what a gateway that only watches would have done.
//!
//! - `tables` is what people read, in a terminal and on a page;
//! - `advice` says what to do next, route by route.

mod advice;
mod tables;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use hapax_gateway::admin::documents::ObservationsDocument;

use crate::{
    args::ObservationReportArgs,
    keys::{Admin, AdminError},
    report::html,
    token::token_in,
};

/// Why there is no report, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("cannot read --token-file {}", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot print the report")]
    Print(#[source] io::Error),
    #[error("cannot write {}; name a file that can be written", path.display())]
    Save {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

/// Asks the gateway, and says what it saw.
pub(crate) fn run(args: &ObservationReportArgs) -> Result<(), ReportError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let seen = runtime.map_err(ReportError::Runtime)?.block_on(ask(args))?;
    match publish(args, &seen) {
        // Whoever read the report has read enough.
        Err(ReportError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        published => published,
    }
}

async fn ask(args: &ObservationReportArgs) -> Result<ObservationsDocument, ReportError> {
    let token = match &args.token_file {
        Some(path) => Some(
            token_in(path)
                .map_err(|source| ReportError::TokenFile { path: path.clone(), source })?,
        ),
        None => args.token.clone(),
    };
    Ok(Admin::new(&args.admin, token.as_deref())?.observations().await?)
}

fn publish(args: &ObservationReportArgs, seen: &ObservationsDocument) -> Result<(), ReportError> {
    let report = tables::report(seen);
    // The file first: whoever closes the pipe early has it all the same.
    if let Some(path) = &args.html {
        let saved = fs::write(path, html(&report));
        saved.map_err(|source| ReportError::Save { path: path.clone(), source })?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        let text = serde_json::to_string_pretty(seen).map_err(io::Error::from);
        return writeln!(out, "{}", text.map_err(ReportError::Print)?).map_err(ReportError::Print);
    }
    report.print(&mut out).map_err(ReportError::Print)
}
