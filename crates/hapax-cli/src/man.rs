//! `hapax man`: manual pages, from the same words that `--help` prints.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, ManArgs};

/// Prints the page of the whole, or writes one for each command.
pub(crate) fn run(args: &ManArgs) -> Result<(), ManError> {
    let mut command = Args::command();
    // Names of commands below others are given to them here: `hapax-keys-list`.
    command.build();
    match &args.directory {
        Some(directory) => write_all(&command, directory),
        None => io::stdout().write_all(&page(&command)?).map_err(ManError::Print),
    }
}

/// Why there are no pages.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManError {
    #[error("cannot print the page")]
    Print(#[from] io::Error),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

fn write_all(command: &Command, directory: &Path) -> Result<(), ManError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ManError::Write { path, source }
    };
    fs::create_dir_all(directory).map_err(failed(directory))?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = directory.join(format!("{name}.1"));
    fs::write(&file, page(command)?).map_err(failed(&file))?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.into_iter().try_for_each(|below| write_all(below, directory))
}

fn page(command: &Command) -> Result<Vec<u8>, io::Error> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
