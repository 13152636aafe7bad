//! What goes along with the program in every package.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use super::{
    archive::Entry,
    bill,
    dependencies::{Brokers, Dependencies},
    notices,
    program::Program,
    release::Release,
    unusable,
};
use crate::TaskFailure;

/// Licences, documents, and what the program says about itself.
pub(super) struct Payload {
    /// `LICENSE-APACHE` and others, and those of everything that is compiled in.
    pub(super) licences: Vec<Entry>,
    pub(super) readme: Vec<u8>,
    /// `hapax.1` and others.
    pub(super) manual: Vec<Entry>,
    /// `hapax.bash`, `_hapax`, `hapax.fish`.
    pub(super) completions: Vec<Entry>,
    /// What a new PostgreSQL database needs.
    pub(super) schema: Vec<u8>,
    /// What is compiled in, as CycloneDX.
    pub(super) bill: Vec<u8>,
    /// What the system starts and reads, by name: files of the folder `packaging`.
    packaging: Vec<Entry>,
}

const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "hapax.bash"), ("zsh", "_hapax"), ("fish", "hapax.fish")];

/// The files of `packaging` that packages hold.
const PACKAGING: [&str; 8] = [
    "debian/postinst",
    "debian/postrm",
    "debian/prerm",
    "gateway.toml",
    "hapax.env",
    "npm/hapax.js",
    "systemd/hapax.service",
    "systemd/hapax.socket",
];

impl Payload {
    /// Asks a program that runs here, and reads the rest from the workspace.
    pub(super) fn gather(
        root: &Path,
        program: &Program,
        release: &Release,
    ) -> Result<Self, TaskFailure> {
        let read = |name: &str| {
            let path = root.join(name);
            fs::read(&path).map_err(|error| unusable(&path, &error))
        };
        let dependencies = Dependencies::of_program(root, program.architecture, brokers(program)?)?;
        let licences =
            ["LICENSE-APACHE", "LICENSE-MIT"].map(|name| Ok(Entry::file(name, read(name)?)));
        let mut licences = licences.into_iter().collect::<Result<Vec<_>, TaskFailure>>()?;
        licences.push(Entry::file("THIRD-PARTY.txt", notices::text(&dependencies)?));
        let packaging =
            PACKAGING.map(|name| Ok(Entry::file(name, read(&format!("packaging/{name}"))?)));
        Ok(Self {
            licences,
            readme: read("README.md")?,
            manual: manual(program)?,
            completions: completions(program)?,
            schema: ask(program, &["migrate", "--print"])?,
            bill: bill::cyclonedx(&dependencies, release)?,
            packaging: packaging.into_iter().collect::<Result<_, TaskFailure>>()?,
        })
    }

    /// A file of the folder `packaging`.
    pub(super) fn packaging(&self, name: &str) -> Vec<u8> {
        let found = self.packaging.iter().find(|entry| entry.path == name);
        // A name that is missing from the list would be seen by every test of a package.
        found.map(|entry| entry.content().to_vec()).unwrap_or_default()
    }
}

/// What the program says it was built with.
fn brokers(program: &Program) -> Result<Brokers, TaskFailure> {
    let said = ask(program, &["--version"])?;
    let said = String::from_utf8_lossy(&said);
    let here = said.split("without:").next().unwrap_or_default();
    Ok(Brokers { kafka: here.contains("kafka") })
}

fn completions(program: &Program) -> Result<Vec<Entry>, TaskFailure> {
    let scripts = COMPLETIONS
        .map(|(shell, name)| Ok(Entry::file(name, ask(program, &["completions", shell])?)));
    scripts.into_iter().collect()
}

fn manual(program: &Program) -> Result<Vec<Entry>, TaskFailure> {
    let directory = tempfile::tempdir().map_err(|error| unusable(&std::env::temp_dir(), &error))?;
    let place = directory.path();
    ask(program, &["man", &place.to_string_lossy()])?;
    let listing = fs::read_dir(place).map_err(|error| unusable(place, &error))?;
    let pages = listing.flatten().map(|page| {
        let content = fs::read(page.path()).map_err(|error| unusable(&page.path(), &error))?;
        Ok(Entry::file(page.file_name().to_string_lossy(), content))
    });
    let mut pages = pages.collect::<Result<Vec<_>, TaskFailure>>()?;
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(pages)
}

/// What the program prints, wherever this machine's user keeps a store.
fn ask(program: &Program, args: &[&str]) -> Result<Vec<u8>, TaskFailure> {
    let path = &program.path;
    let asked = Command::new(path).args(args).env_remove("HAPAX_STORE").output();
    let Output { status, stdout, stderr } = asked.map_err(|error| unusable(path, &error))?;
    if status.success() {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr).into_owned();
    Err(TaskFailure::new(format!("`hapax {}` failed: {said}", args.join(" "))))
}
