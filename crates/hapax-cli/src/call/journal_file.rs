//! Where the journal is.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use hapax::client::journal::{Journal, JournalEncryption, JournalOptions, Name};

use super::error::CallFailure;
use crate::{args::CallArgs, encryption::for_journal, shell::quoted};

/// A journal, open or not, and how it is named on a command line.
#[derive(Debug, Clone)]
pub(super) struct JournalFile {
    path: PathBuf,
    /// What it is encrypted with.
    encryption: Option<JournalEncryption>,
    /// What a resume has to be told besides the name.
    flags: String,
    /// Whether the directories above are ours to make.
    is_usual: bool,
}

impl JournalFile {
    pub(super) fn of(args: &CallArgs) -> Result<Self, CallFailure> {
        let mut flags = String::new();
        let (path, is_usual) = match &args.kept.journal {
            Some(path) => {
                flags.push_str(&format!(" --journal {}", quoted(&path.to_string_lossy())));
                (path.clone(), false)
            }
            None => (usual(|name| env::var_os(name)).ok_or(CallFailure::NoHome)?, true),
        };
        let encryption = for_journal(&args.kept.keys)?;
        if let Some(file) = &args.kept.keys.master_key_file {
            flags.push_str(&format!(" --master-key-file {}", quoted(&file.to_string_lossy())));
        }
        for (name, variable) in &args.request.header_env {
            let given = format!("{name}={variable}");
            flags.push_str(&format!(" --header-env {}", quoted(&given)));
        }
        Ok(Self { path, encryption, flags, is_usual })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The journal, made if it is not there.
    pub(super) fn open(&self) -> Result<Journal, CallFailure> {
        if let Some(directory) = self.path.parent().filter(|_| self.is_usual) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|source| CallFailure::Directory { path: directory.to_owned(), source })?;
        }
        let encryption = self.encryption.clone();
        Ok(Journal::open(&self.path, JournalOptions { encryption, ..JournalOptions::default() })?)
    }

    /// The journal, if it is there: who only looks leaves no file behind.
    pub(super) fn find(&self) -> Result<Journal, CallFailure> {
        if self.path.exists() {
            self.open()
        } else {
            Err(CallFailure::NoJournal { path: self.path.clone() })
        }
    }

    /// The command that finishes an operation.
    pub(super) fn resume(&self, name: &Name) -> String {
        let (name, flags) = (quoted(name.as_str()), &self.flags);
        let between = if name.starts_with(['-', '\'']) { '=' } else { ' ' };
        format!("hapax call --resume{between}{name}{flags}")
    }
}

/// Where state is kept that is no configuration and no cache, as the XDG base directories have it.
fn usual(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("hapax/calls.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_journal_is_where_state_is_kept() {
        let usual = |state: Option<&str>, home: Option<&str>| {
            usual(|name| if name == "HOME" { home } else { state }.map(OsString::from))
        };
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(usual(Some("/state"), Some("/me")), path("/state/hapax/calls.db"));
        assert_eq!(usual(None, Some("/me")), path("/me/.local/state/hapax/calls.db"));
        assert_eq!(usual(Some("here"), Some("/me")), path("/me/.local/state/hapax/calls.db"));
        assert_eq!(usual(Some(""), None), None);
    }
}
