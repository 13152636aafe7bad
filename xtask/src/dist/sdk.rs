//! The packages for other languages, as the script `package` in each folder of `sdk` makes them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use super::{
    Package,
    archive::{Entry, hex, zip},
    bill::Handed,
    release::Release,
    unusable,
};
use crate::{TaskFailure, ci::succeed};

/// A language, and what its people install.
struct Sdk {
    /// Its folder in `sdk`.
    folder: &'static str,
    /// The package as tools for bills of materials call it, without its version.
    purl: &'static str,
    /// What the script leaves behind, with `VERSION` for the version; the first is what services depend on.
    files: &'static [&'static str],
}

const SDKS: [Sdk; 4] = [
    Sdk {
        folder: "python",
        purl: "pkg:pypi/hapax-once",
        files: &["hapax_once-VERSION-py3-none-any.whl", "hapax_once-VERSION.tar.gz"],
    },
    Sdk { folder: "node", purl: "pkg:npm/hapax-once", files: &["hapax-once-VERSION.tgz"] },
    Sdk {
        folder: "java",
        purl: "pkg:maven/dev.hapax/hapax-once",
        files: &[
            "hapax-once-VERSION.jar",
            "hapax-once-VERSION.pom",
            "hapax-once-VERSION-sources.jar",
            "hapax-once-VERSION-javadoc.jar",
        ],
    },
    Sdk { folder: "go", purl: "pkg:golang/hapax.dev/once", files: &[] },
];

/// How the module is called, and the folder that the script puts it into.
const GO_MODULE: (&str, &str) = ("hapax.dev/once", "hapax-once");

/// What is handed out for every language, and what the bill of materials says of it.
pub(super) fn pack(
    root: &Path,
    release: &Release,
) -> Result<(Vec<Package>, Vec<Handed>), TaskFailure> {
    let (mut packages, mut handed) = (Vec::new(), Vec::new());
    for sdk in &SDKS {
        let made = sdk.pack(root, release)?;
        handed.extend(made.first().map(|main| sdk.handed(main, release)));
        packages.extend(made);
    }
    Ok((packages, handed))
}

impl Sdk {
    fn pack(&self, root: &Path, release: &Release) -> Result<Vec<Package>, TaskFailure> {
        let place = tempfile::tempdir().map_err(|error| unusable(&std::env::temp_dir(), &error))?;
        let script = root.join("sdk").join(self.folder).join("package");
        let mut package = Command::new(&script);
        package.arg(place.path()).arg("release");
        succeed(package.env("SOURCE_DATE_EPOCH", release.timestamp.to_string()))?;
        if self.folder == "go" {
            return Ok(vec![go_archive(place.path(), release)?]);
        }
        let files = self.files.iter().map(|name| {
            let name = name.replace("VERSION", &release.version);
            let path = place.path().join(&name);
            let content = fs::read(&path).map_err(|error| {
                // Its version is written in a file of its own language.
                TaskFailure::new(format!("{} did not make {name}: {error}", script.display()))
            })?;
            Ok(Package::new(name, content))
        });
        files.collect()
    }

    fn handed(&self, package: &Package, release: &Release) -> Handed {
        // Only Go has a letter before the number.
        let letter = if self.folder == "go" { "v" } else { "" };
        Handed {
            purl: format!("{}@{letter}{}", self.purl, release.version),
            sha256: hex(&Sha256::digest(&package.content)),
        }
    }
}

/// `hapax-once-go-VERSION.zip`: what a proxy for modules hands out.
fn go_archive(place: &Path, release: &Release) -> Result<Package, TaskFailure> {
    let (module, folder) = GO_MODULE;
    let folder = place.join(folder);
    let mut entries = Vec::new();
    for path in files_below(&folder)? {
        let content = fs::read(&path).map_err(|error| unusable(&path, &error))?;
        let name = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy();
        entries.push(Entry::file(format!("{module}@v{}/{name}", release.version), content));
    }
    let content = zip(&entries, release)?;
    Ok(Package::new(format!("hapax-once-go-{}.zip", release.version), content))
}

/// All files of a folder and those in it, in order.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, TaskFailure> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| unusable(&folder, &error))?.flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}
