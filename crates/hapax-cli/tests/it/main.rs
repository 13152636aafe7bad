//! The program, as people run it.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod audit;
mod backup;
mod call;
mod callers;
mod clocks;
mod completions;
mod consumers;
mod cors;
mod cuts;
mod cuts_proxy;
mod dashboard;
mod demo;
mod demo_page;
mod doctor;
mod doubts;
mod encryption;
mod failover;
mod fleet;
mod foreign;
mod going_out;
mod hops;
mod http2;
mod keys;
mod kills;
mod languages;
mod leaks;
mod man;
mod master_keys;
mod migrate;
mod observing;
mod openapi;
mod operating;
mod outbox;
mod passage;
mod patroni;
mod plan;
mod postgres;
mod relay;
mod rights;
mod rooms;
mod serve;
mod simulate;
mod standard;
mod telemetry;
mod truth;
mod truth_answers;
mod truth_upstream;
mod usage;
mod verify;
mod wire;
mod world;

use std::process::{Command, Output};

/// Runs the program and waits for its end.
fn hapax(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hapax")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
