//! Hapax beside the crates one would use instead: first what each does to real requests, then how fast.
//!
//! - `ways/` is who is compared, each a server in a process of its own (`serve.rs`);
//! - `effect.rs` is the handler behind all of them: it counts what it did for each key;
//! - `stage.rs` starts a way with what it needs, `wire.rs` and `load.rs` speak to it;
//! - `exam/` asks what it does, `rounds.rs` how fast, `report.rs` says so.

#![expect(clippy::print_stdout, reason = "a report for people is what this program is for")]

mod args;
mod effect;
mod error;
mod exam;
mod load;
mod process;
mod redis;
mod report;
mod rounds;
mod serve;
mod stage;
mod ways;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Args, Mode},
    error::sentence,
};

// All ways have the same allocator: the one that `hapax serve` is released with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Args::parse().mode() {
        Mode::Serve(serve) => serve::run(&serve).map(|()| true),
        Mode::Compare(plan) => report::run(&plan),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("bench-peers: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}
