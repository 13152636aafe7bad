//! `hapax doctor`: what makes the promise hold, looked at.
//!
//! A folder for each thing that is looked at: [`postgres`], [`sqlite`], [`gateway`], in which each file is an
//! area. An area gathers its facts and has a list of checks, each a function from these facts to a
//! [`Diagnosis`]. Facts come from servers and files; checks ask nobody, and know no clock.
//!
//! [`past`] looks at what every store says of itself. `print` says what was found, `error` why nothing could be.

mod diagnosis;
mod error;
mod gateway;
mod keys;
mod past;
mod postgres;
mod print;
mod sqlite;

use std::{io, process::ExitCode, time::Duration};

use hapax_gateway::{Config, config::ConfigSource};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::error::DoctorError;
use self::{
    diagnosis::{Diagnosis, Severity},
    print::FindingsForm,
};
use crate::{
    args::DoctorArgs,
    relay::{GatewayFile, load_gateway},
    store::StoreAddress,
};

const WARNED: u8 = 1;
const ENDANGERED: u8 = 2;
const CANNOT_TELL: u8 = 3;

/// What the checks are told beside what they find.
#[derive(Debug, Clone, Copy)]
struct Expectations {
    /// How long clients go on trying, if somebody said so.
    client_retries_for: Option<Duration>,
    /// How many connections to a server all gateways together want.
    connections: u32,
    /// Whether somebody says that the store was restored.
    is_restored: bool,
}

/// Looks, says what was found, and answers with the code to exit with.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let looked = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DoctorError::Runtime)
        .and_then(|runtime| runtime.block_on(examine(args)));
    match looked.and_then(|found| told(args, &found)) {
        Ok(worst) => exit_code(worst),
        Err(error) => {
            error::tell(&error);
            ExitCode::from(CANNOT_TELL)
        }
    }
}

fn told(args: &DoctorArgs, found: &[Diagnosis]) -> Result<Option<Severity>, DoctorError> {
    let lines = FindingsForm::Lines { with_what_is_well: !args.quiet };
    let form = if args.json { FindingsForm::Json } else { lines };
    print::findings(&mut io::stdout().lock(), found, form)?;
    Ok(found.iter().filter_map(Diagnosis::severity).max())
}

fn exit_code(worst: Option<Severity>) -> ExitCode {
    match worst {
        None | Some(Severity::Note) => ExitCode::SUCCESS,
        Some(Severity::Warning) => ExitCode::from(WARNED),
        Some(Severity::Danger) => ExitCode::from(ENDANGERED),
    }
}

async fn examine(args: &DoctorArgs) -> Result<Vec<Diagnosis>, DoctorError> {
    let config = match &args.config {
        Some(file) => {
            let mut source = ConfigSource { file: Some(file.clone()), ..Default::default() };
            source.overrides.store = args.typed_store();
            let GatewayFile { config, relays, .. } = load_gateway(&source)?;
            Some((file, config, relays.len()))
        }
        None => None,
    };
    let relays = config.as_ref().map_or(0, |(.., relays)| *relays);
    let per_gateway =
        postgres::STORE_CONNECTIONS + if relays > 0 { postgres::OUTBOX_CONNECTIONS } else { 0 };
    let expected = Expectations {
        client_retries_for: args.client_retries_for,
        connections: args.gateways.saturating_mul(per_gateway),
        is_restored: args.after_restore,
    };
    let progress = progress();
    let mut found = Vec::new();
    if let Some((file, config, _)) = &config {
        progress.set_message("the configuration");
        found.extend(gateway::examine(file, config, expected));
    }
    let store = store(args, config.as_ref().map(|(_, config, _)| config));
    match store.parse::<StoreAddress>()? {
        StoreAddress::Memory => found.push(memory()),
        StoreAddress::Sqlite(path) => found.extend(sqlite::examine(&path, expected, &progress)),
        StoreAddress::Postgres(address) => {
            found.extend(postgres::examine(&address, expected, &progress).await);
        }
    }
    progress.finish_and_clear();
    Ok(found)
}

/// What was typed counts for more than the file. Clap has made sure that there is one of them.
fn store(args: &DoctorArgs, config: Option<&Config>) -> String {
    let of_file = || config.map_or_else(String::new, |config| config.store.clone());
    args.typed_store().unwrap_or_else(of_file)
}

fn memory() -> Diagnosis {
    Diagnosis::new("store", "records are kept in memory").danger(
        "every key is forgotten when the process ends, and a retry after that runs again",
        "write store = \"sqlite:hapax.db\" or \"postgres://…\"",
    )
}

/// Shown on a terminal alone.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} looking at {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
