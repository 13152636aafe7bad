//! `cargo xtask COMMAND`.

#![expect(clippy::print_stdout, reason = "telling what was done is what this program is for")]

use std::{path::Path, process::ExitCode};

use clap::Parser;
use xtask::Args;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."));
    match Args::parse().run(root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
