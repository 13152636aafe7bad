//! What went wrong, and with which code to exit.

use std::{io, path::PathBuf, process::ExitCode, time::Duration};

use hapax::{
    client::{
        BuildError, CallError,
        journal::{JournalError, Name},
    },
    retry::{Conclusion, InvalidSchedule},
};
use http::HeaderName;

use crate::{encryption::EncryptionTaskError, signals::Signal};

/// The code to exit with, as `hapax call --help` lists them. The gravest is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallExitCode {
    Done,
    Refused,
    GaveUp,
    Failed,
    Unknown,
    Usage,
    Interrupted(Signal),
}

impl From<CallExitCode> for ExitCode {
    fn from(code: CallExitCode) -> Self {
        Self::from(match code {
            CallExitCode::Done => 0,
            CallExitCode::Failed => 1,
            CallExitCode::Usage => 2,
            CallExitCode::Refused => 3,
            CallExitCode::Unknown => 4,
            CallExitCode::GaveUp => 5,
            CallExitCode::Interrupted(Signal::HangUp) => 129,
            CallExitCode::Interrupted(Signal::Interrupt) => 130,
            CallExitCode::Interrupted(Signal::Terminate) => 143,
        })
    }
}

impl From<Conclusion> for CallExitCode {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Done => Self::Done,
            Conclusion::Refused => Self::Refused,
            Conclusion::Unknown => Self::Unknown,
            Conclusion::GaveUp => Self::GaveUp,
        }
    }
}

/// Why there is nothing to conclude.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallFailure {
    #[error("--json needs what to send: text, @FILE, or - for standard input")]
    JsonMissing,
    #[error("--json takes no value here: it asks for an answer in JSON")]
    JsonUnexpected,
    #[error("the body is no JSON; mend it, or send it as it is with --data")]
    NotJson(#[source] serde_json::Error),
    #[error("the body cannot be read from {from}")]
    Body {
        from: String,
        #[source]
        source: io::Error,
    },
    #[error("the body is larger than the {max} bytes that can be kept to send it again")]
    TooLarge { max: usize },
    #[error("--header-env: the variable {variable} is not set, or holds no value of a header")]
    Variable { variable: String },
    #[error(
        "{header} is given with -H and something else with --header-env: give both the same way, \
         because the journal keeps either all credentials or none"
    )]
    MixedCredentials { header: HeaderName },
    #[error(
        "--header-env would send it with every pending operation, whoever is asked; name one with \
         --resume NAME"
    )]
    SecretsForAll,
    #[error("--output {} cannot be written; name a file in a directory that exists", path.display())]
    Output {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "there is no home directory to keep the journal in; give --journal FILE, or --no-journal"
    )]
    NoHome,
    #[error("the directory {} cannot be made; give --journal FILE", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    MasterKey(#[from] EncryptionTaskError),
    #[error("there is no journal {} yet, so there is nothing in it", path.display())]
    NoJournal { path: PathBuf },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error(transparent)]
    Open(#[from] hapax::client::journal::OpenError),
    #[error("the journal failed")]
    Journal(#[from] JournalError),
    #[error("there is no operation `{name}` in the journal; see hapax call --list")]
    NotFound { name: Name },
    #[error(
        "the name `{name}` belongs to another request: {differs}. Nothing was sent. Give this one \
         a --name of its own, or forget the other with --forget"
    )]
    NameReused { name: Name, differs: String },
    #[error(
        "`{name}` is pending, {}; finish it with --resume, or add --force: if it was sent, nobody \
         finds out what became of it",
        held(ends_in)
    )]
    Pending { name: Name, ends_in: Option<Duration> },
    #[error(
        "`{name}` was begun with {headers}, which the journal does not keep; give it again with \
         --header-env {headers}=VARIABLE"
    )]
    CredentialsMissing { name: Name, headers: String },
    #[error(transparent)]
    Call(CallError),
    #[error("the system gives no random numbers to name the call with; give --name")]
    Random(#[source] getrandom::Error),
    #[error("the answer cannot be printed; the journal has it, if there is one")]
    Print(#[source] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

impl CallFailure {
    pub(super) fn code(&self) -> CallExitCode {
        match self {
            Self::JsonMissing
            | Self::JsonUnexpected
            | Self::NotJson(_)
            | Self::Body { .. }
            | Self::TooLarge { .. }
            | Self::Variable { .. }
            | Self::MixedCredentials { .. }
            | Self::SecretsForAll
            | Self::Output { .. }
            | Self::Call(CallError::Invalid(_)) => CallExitCode::Usage,
            Self::NoHome
            | Self::NameReused { .. }
            | Self::Directory { .. }
            | Self::MasterKey(_)
            | Self::NoJournal { .. }
            | Self::Build(_)
            | Self::Schedule(_)
            | Self::Open(_)
            | Self::Journal(_)
            | Self::NotFound { .. }
            | Self::Pending { .. }
            | Self::CredentialsMissing { .. }
            | Self::Call(_)
            | Self::Random(_)
            | Self::Print(_)
            | Self::Runtime(_) => CallExitCode::Failed,
        }
    }
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        if let CallError::CredentialsMissing { name, headers } = error {
            let headers: Vec<_> = headers.iter().map(HeaderName::as_str).collect();
            return Self::CredentialsMissing { name, headers: headers.join(", ") };
        }
        Self::Call(error)
    }
}

fn held(ends_in: &Option<Duration>) -> String {
    match ends_in {
        Some(span) => {
            format!("and pursued by another process (for {span:.0?} if that one is gone)")
        }
        None => "and nobody pursues it".to_owned(),
    }
}
