//! `cargo xtask COMMAND`.

#![expect(clippy::print_stdout, reason = "telling what was done is what this program is for")]

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use xtask::Args;

fn main() -> ExitCode {
    // Asked at run time: clones that share a target directory also share this program.
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
    match Args::parse().run(root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
