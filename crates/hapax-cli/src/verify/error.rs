//! Why nothing was examined, as what to do about it.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
};

use hapax_examine::{
    ConsentError, HttpAddressError, LiveCredential, OpenApiError, ReachedHost, ReportFault,
    WireError,
};

use crate::store::InvalidAddress;

/// Mostly before anything was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum VerifyError {
    #[error(
        "give a method and a URL in full, as in `POST http://127.0.0.1:8080/payments`, not `{given}`"
    )]
    Target { given: String },
    #[error("say what to examine: a URL, or --config FILE")]
    NoTarget,
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}, line {line}: {reason}; `hapax verify --help` has all settings, with - for _", path.display())]
    File { path: PathBuf, line: usize, reason: String },
    #[error("{} has several routes: say which with --route, one of {routes}", path.display())]
    WhichRoute { path: PathBuf, routes: String },
    #[error("{} has no route '{name}', but {routes}", path.display())]
    NoRoute { path: PathBuf, name: String, routes: String },
    #[error("the settings cannot be put together")]
    Settings(#[source] toml::ser::Error),
    #[error("the settings cannot be put together")]
    Mixed(#[source] toml::de::Error),
    #[error(transparent)]
    Address(#[from] HttpAddressError),
    #[error("{option} is a path, which begins with /")]
    NoPath { option: &'static str },
    #[error("the method {0} changes nothing: examine one that does, such as POST")]
    Harmless(String),
    #[error("--json, --changed-body or --invalid-body is no JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("say what --body is with --content-type")]
    NoContentType,
    #[error(
        "nothing marks an operation: write {{marker}} into the body or the path, where the API keeps it, \
         so that its effects can be counted"
    )]
    NoMarker,
    // It may hold a secret.
    #[error("a header cannot be read: write 'Name: value'")]
    Header,
    #[error("{place} names the variable {name}, which is not set or is no text")]
    Variable { place: String, name: String },
    #[error("there is no profile `{0}`; see `hapax verify --help`")]
    Profile(String),
    #[error(
        "its keys stand in the body: write {{key}} into it, as in \"idempotency_key\":\"{{key}}\""
    )]
    NoKeyPlace,
    #[error(
        "the run that is gone on with had {setting}, whose secrets are not kept: give it again"
    )]
    NotKept { setting: String },
    #[error("there is no probe `{name}`: they are {all}")]
    Probe { name: String, all: String },
    #[error("no probe is left to run")]
    NothingLeft,
    #[error(
        "--count `{given}` is not understood: write 'GET /payments?ref={{marker}} /items/length'"
    )]
    Count { given: String },
    #[error("cannot listen at {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("--count-sql needs --count-store: sqlite:PATH or postgres://user@host:port/database")]
    NoCountStore,
    #[error("--count-store cannot be used")]
    CountStore(#[source] InvalidAddress),
    #[error(
        "what is counted in memory cannot be counted from here: --count-store sqlite:PATH or postgres://…"
    )]
    CountMemory,
    #[error("--ca {} holds no certificate in PEM", path.display())]
    Certificates { path: PathBuf },
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("--scope-file {}", path.display())]
    Scope {
        path: PathBuf,
        #[source]
        source: ConsentError,
    },
    #[error(
        "{reached} is not this machine: whoever owns it must allow it; write {} and who did into a text, and \
         give --scope-file FILE and --i-am-authorised", .reached.host
    )]
    NotAllowed { reached: ReachedHost },
    #[error("{reached} is {whose}, which is never examined")]
    Production { reached: ReachedHost, whose: &'static str },
    #[error(
        "{} has what looks like {}: it is never sent, examine with credentials for tests",
        .0.place, .0.looks_like
    )]
    LiveCredential(LiveCredential),
    #[error(
        "it could begin {operations} operations, and {allowed} are allowed: leave out the dearest with \
         --skip {dearest}, or allow them with --max-effects {operations}"
    )]
    TooManyEffects { operations: u32, allowed: u32, dearest: String },
    #[error("nobody is there to be asked whether to go on: give --yes")]
    NobodyToAsk,
    #[error("nothing was asked")]
    Declined,
    #[error("--openapi {}", path.display())]
    OpenApi {
        path: PathBuf,
        #[source]
        source: OpenApiError,
    },
    #[error("{} is there already: name another file", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the report {} cannot be used", path.display())]
    Report {
        path: PathBuf,
        #[source]
        source: ReportFault,
    },
    #[error("--resume {} is no saved run", path.display())]
    NoRun {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("cannot print")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

/// Nobody is left to be told when the terminal is gone.
pub(super) fn tell(error: &VerifyError) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::sentence(error));
}
