//! Serves payments.

use std::error::Error;

use clap::Parser;
use hapax_core::Faults;
use payments::{Settings, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    serve(Settings::parse(), Faults::default()).await
}
