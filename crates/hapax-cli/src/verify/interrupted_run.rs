//! The file in which a run that was interrupted waits to be gone on with.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use hapax_examine::{ExaminationMemory, ReportDocument};
use serde::{Deserialize, Serialize};

use super::{
    error::VerifyError,
    headers::{has_secret_name, names_no_secret},
};
use crate::args::VerifySettings;

/// The probe that may have to wait for days.
const EXPIRY: &str = "V26";

/// What was done, and what was told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InterruptedRun {
    pub(super) settings: VerifySettings,
    /// Settings that held secrets, and have to be given again.
    left_out: Vec<String>,
    /// What was found by then; nothing if not even the controls were over.
    pub(super) report: Option<ReportDocument>,
    pub(super) memory: ExaminationMemory,
}

impl InterruptedRun {
    /// Without secrets: what names a variable of the environment is kept.
    pub(super) fn new(
        settings: &VerifySettings,
        seed: u64,
        report: Option<ReportDocument>,
        memory: ExaminationMemory,
    ) -> Self {
        let mut settings = VerifySettings { seed: Some(seed), ..settings.clone() };
        let mut left_out = Vec::new();
        let lists = [
            ("--credential", &mut settings.credential),
            ("--other-credential", &mut settings.other_credential),
            ("--revoked-credential", &mut settings.revoked_credential),
            ("--header", &mut settings.header),
        ];
        for (name, list) in lists {
            let is_kept = |given: &String| {
                names_no_secret(given) || (name == "--header" && !has_secret_name(given))
            };
            if !list.iter().all(is_kept) {
                left_out.push(name.to_owned());
                list.clear();
            }
        }
        let has_password =
            |store: &String| !names_no_secret(store) && !store.starts_with("sqlite:");
        if settings.count_store.as_ref().is_some_and(has_password) {
            left_out.push("--count-store".to_owned());
            settings.count_store = None;
        }
        Self { settings, left_out, report, memory }
    }

    pub(super) fn read(path: &Path) -> Result<Self, VerifyError> {
        let text = fs::read_to_string(path)
            .map_err(|source| VerifyError::Read { path: path.to_owned(), source })?;
        serde_json::from_str(&text)
            .map_err(|source| VerifyError::NoRun { path: path.to_owned(), source })
    }

    /// Whether this probe need not be run again. Who waits for keys to be forgotten goes on with that.
    pub(super) fn has_done(&self, probe: &str) -> bool {
        let is_awaited = probe == EXPIRY && !self.memory.awaited.is_empty();
        let report = self.report.as_ref().filter(|_| !is_awaited);
        report.is_some_and(|report| report.probes.iter().any(|done| done.id == probe))
    }

    /// Refuses to go on without what was not kept.
    pub(super) fn check(&self, settings: &VerifySettings) -> Result<(), VerifyError> {
        for setting in &self.left_out {
            let is_given = match setting.as_str() {
                "--credential" => !settings.credential.is_empty(),
                "--other-credential" => !settings.other_credential.is_empty(),
                "--revoked-credential" => !settings.revoked_credential.is_empty(),
                "--header" => !settings.header.is_empty(),
                "--count-store" => settings.count_store.is_some(),
                _ => true,
            };
            if !is_given {
                return Err(VerifyError::NotKept { setting: setting.clone() });
            }
        }
        Ok(())
    }

    /// Writes it for its owner alone: it holds what went over the wire.
    pub(super) fn write(&self, path: &Path) -> Result<(), VerifyError> {
        let failed = |source| VerifyError::Write { path: path.to_owned(), source };
        let text = serde_json::to_string(self).map_err(|error| failed(error.into()))?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
    }
}

/// Where a run is kept that names no file.
pub(super) fn usual_path(seed: u64) -> PathBuf {
    PathBuf::from(format!("verify-{seed}.json"))
}
