//! `hapax completions`: what a shell needs to complete what people type.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};

/// Prints it.
pub(crate) fn run(args: &CompletionsArgs) -> io::Result<()> {
    // Made in memory first: clap's generators end the program where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "hapax", &mut script);
    io::stdout().write_all(&script)
}
