//! The same service, killed at a place that a test names.

use std::{
    error::Error,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use clap::Parser;
use hapax_core::Faults;
use payments::{Settings, serve};
use rustix::process::{Signal, getpid, kill_process};

#[derive(Debug, Parser)]
struct Orders {
    #[command(flatten)]
    settings: Settings,
    /// The place it dies at.
    #[arg(long)]
    place: String,
    /// At which passing of that place, counted from one.
    #[arg(long, default_value_t = 1)]
    nth: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Orders { settings, place, nth } = Orders::parse();
    let passed = AtomicU64::new(0);
    let faults = Faults::new(move |here| {
        if here == place && passed.fetch_add(1, Relaxed) + 1 == nth {
            die();
        }
        Ok(())
    });
    serve(settings, faults).await
}

/// Nothing of this process runs after this, and nothing is cleaned up.
fn die() -> ! {
    loop {
        // There is nobody left to tell if it fails, and nothing to do but to try again.
        let _ = kill_process(getpid(), Signal::KILL);
        thread::yield_now();
    }
}
