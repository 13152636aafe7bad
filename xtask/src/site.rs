//! `cargo xtask site`: the documents as pages with a search, built from the files of the repository.
//!
//! Documents link to examples and sources beside them, so all of that is laid out as it is here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;

use crate::{
    TaskFailure,
    ci::{Tool, succeed, target_dir},
    tidy::{Tree, links},
};

/// Where the pages go.
#[derive(Debug, Clone, Default, Args)]
pub struct Site {
    /// The folder for the pages; `site` in the target directory unless told otherwise.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What the pages are made with, and how.
const MAKER: Tool = Tool::python("mkdocs-material", "9.8.1");
const SETTINGS: &str = "docs/site.yml";

impl Site {
    /// Builds the pages; a link that leads nowhere is a failure.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let Some(folder) = MAKER.folder(root)? else { return Ok(()) };
        let work = target_dir()?.join("site-pages");
        let pages = work.join("pages");
        lay_out(&Tree::read(root)?, root, &pages)?;
        let out = self.out.clone().map_or_else(|| Ok(target_dir()?.join("site")), Ok)?;
        let settings = read(&root.join(SETTINGS))?;
        let settings =
            format!("docs_dir: {}\nsite_dir: {}\n{settings}", pages.display(), out.display());
        let file = work.join("mkdocs.yml");
        write(&file, &settings)?;
        let mut make = Command::new("python3");
        make.args(["-m", "mkdocs", "build", "--strict", "--clean", "--config-file"]);
        succeed(make.arg(file).env("PYTHONPATH", folder).env("NO_MKDOCS_2_WARNING", "1"))?;
        println!("{}", out.join("index.html").display());
        Ok(())
    }
}

/// Copies every document, and every file that one links to.
fn lay_out(tree: &Tree, root: &Path, pages: &Path) -> Result<(), TaskFailure> {
    match fs::remove_dir_all(pages) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed(pages, &error));
        }
        Ok(()) | Err(_) => {}
    }
    for document in tree.ending(".md") {
        let linked = links::files(document).into_iter().filter(|path| tree.contains(path));
        for path in linked.chain([document.path.clone()]) {
            let (from, to) = (root.join(&path), pages.join(&path));
            if from.is_dir() || to.exists() {
                continue;
            }
            let folder = to.parent().unwrap_or(pages);
            fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
            fs::copy(&from, &to).map_err(|error| failed(&from, &error))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, TaskFailure> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), TaskFailure> {
    fs::write(path, text).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> TaskFailure {
    TaskFailure::new(format!("{}: {error}", path.display()))
}
