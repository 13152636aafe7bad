//! The licences of everything that is compiled into the program, whose texts have to go along.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use super::{
    dependencies::{DependedOn, Dependencies},
    unusable,
};
use crate::TaskFailure;

/// How files are called that hold such a text, in capitals or not.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// Every crate with its licence, then each text once, with the crates that it is from.
pub(super) fn text(dependencies: &Dependencies) -> Result<String, TaskFailure> {
    let foreign = || dependencies.packages.iter().filter(|one| one.package.source.is_some());
    let mut out = String::from(
        "What is compiled into hapax, and the licences that others gave it under.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in foreign() {
        let licence = one.package.license.as_deref().unwrap_or("see below");
        // Writing to a string does not fail.
        let _ = writeln!(out, "{}: {licence}", title(one));
        for text in texts_of(one)? {
            texts.entry(text).or_default().push(title(one));
        }
    }
    let mut texts: Vec<_> = texts.into_iter().map(|(text, of)| (of, text)).collect();
    texts.sort();
    for (of, text) in texts {
        let _ = write!(out, "\n{}\n{}\n\n{text}\n", "=".repeat(80), of.join(", "));
    }
    Ok(out)
}

fn title(one: &DependedOn) -> String {
    format!("{} {}", one.package.name, one.package.version)
}

/// The texts beside a crate's manifest, and those of the C library inside of it.
fn texts_of(one: &DependedOn) -> Result<Vec<String>, TaskFailure> {
    let folder = one.package.manifest_path.parent().unwrap_or_else(|| Path::new("."));
    let mut texts = Vec::new();
    for folder in [folder.to_owned(), folder.join("librdkafka"), folder.join("zstd")] {
        let Ok(listing) = fs::read_dir(&folder) else { continue };
        let mut files: Vec<_> = listing.flatten().map(|file| file.path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file() && is_licence(file)) {
            let text = fs::read(file).map_err(|error| unusable(file, &error))?;
            texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n").trim_end().to_owned());
        }
    }
    Ok(texts)
}

fn is_licence(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    NAMES.iter().any(|start| name.starts_with(start))
}
