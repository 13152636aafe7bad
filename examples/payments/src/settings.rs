//! What can be set.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

/// A payment service that charges, records and mails once, however often it is asked or killed.
#[derive(Debug, Clone, Parser)]
pub struct Settings {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// Its PostgreSQL database: postgres://USER@HOST:PORT/NAME.
    #[arg(long, env = "DATABASE_URL")]
    pub database: String,
    /// Where the payment provider is.
    #[arg(long, default_value = "http://127.0.0.1:4000")]
    pub provider: String,
    /// How long the provider may take to answer, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    pub provider_timeout_ms: u64,
    /// The file that stands in for a mail server.
    #[arg(long, default_value = "mails.txt")]
    pub mails: PathBuf,
    /// How long a process is trusted to be alive between two signs of life, in milliseconds.
    #[arg(long, default_value_t = 5000)]
    pub lease_ms: u64,
    /// How often abandoned payments are looked for, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    pub sweep_ms: u64,
}
