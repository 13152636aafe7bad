//! Programs in other languages, copied beside the packages they name.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use crate::text;

/// How packages are installed.
pub(crate) struct Packages {
    /// What the copy is called, which is kept from run to run.
    pub(crate) name: &'static str,
    /// The folder with the programs.
    pub(crate) programs: PathBuf,
    /// The file there that names the packages.
    pub(crate) list: &'static str,
    /// The commands that install them, run one after another in the copy.
    pub(crate) steps: &'static [&'static [&'static str]],
}

impl Packages {
    /// Copies the programs and installs what they need, if that has changed; where the copy is.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.name);
        fs::create_dir_all(&folder).unwrap();
        // Tests that run side by side need the same packages: each waits for the first.
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        self.copy(&folder);
        let (list, mark) = (folder.join(self.list), folder.join("installed"));
        if fs::read(&mark).ok() == Some(fs::read(&list).unwrap()) {
            return Ok(folder);
        }
        for step in self.steps {
            let output = Command::new(step[0]).args(&step[1..]).current_dir(&folder).output();
            let output = output.map_err(|error| format!("{}: {error}", step[0]))?;
            if !output.status.success() {
                return Err(format!("`{}`: {}", step.join(" "), text(&output.stderr)));
            }
        }
        fs::copy(list, mark).unwrap();
        Ok(folder)
    }

    fn copy(&self, folder: &Path) {
        for entry in fs::read_dir(&self.programs).unwrap() {
            let from = entry.unwrap().path();
            let to = folder.join(from.file_name().unwrap());
            // What is there already may be running.
            if from.is_file() && fs::read(&to).ok() != Some(fs::read(&from).unwrap()) {
                fs::copy(from, to).unwrap();
            }
        }
    }
}
