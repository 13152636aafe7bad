//! `hapax-bench-guard PATH`: runs one hot path, for `cargo xtask bench-guard` to count.
//!
//! Everything is the same in every run: no chance, no files, no second thread.

#![expect(clippy::print_stdout, reason = "the names of the paths are what it is asked for")]

mod measure;
mod paths;

use std::{env, error::Error, process::ExitCode};

use self::paths::PATHS;

type Failed = Box<dyn Error>;

fn main() -> Result<ExitCode, Failed> {
    let Some(name) = env::args().nth(1) else {
        PATHS.iter().for_each(|path| println!("{} {}", path.name, path.rounds));
        return Ok(ExitCode::SUCCESS);
    };
    let Some(path) = PATHS.iter().find(|path| path.name == name) else {
        println!("there is no path `{name}`");
        return Ok(ExitCode::FAILURE);
    };
    (path.run)(path.rounds)?;
    Ok(ExitCode::SUCCESS)
}
