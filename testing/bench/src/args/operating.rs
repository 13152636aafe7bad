//! What people type after `cargo xtask bench operating`.

use clap::{ValueEnum, value_parser};

use super::{MeasureArgs, ProgramArgs, seconds};

#[derive(Debug, clap::Args)]
pub(crate) struct OperatingArgs {
    /// Which parts are measured; all unless told otherwise.
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_enum)]
    pub(crate) parts: Option<Vec<OperatingPart>>,

    #[command(flatten)]
    pub(crate) measure: MeasureArgs,

    /// How many requests a second are made where telemetry is measured. Where the machine does not
    /// sustain so many, fewer are made, and the report says how many.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = value_parser!(u32).range(10..=1_000_000))]
    pub(crate) rate: u32,

    /// For how long a gateway is left alone, with the dashboard open and without [default: 20].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) idle: Option<f64>,

    #[command(flatten)]
    pub(crate) program: ProgramArgs,
}

/// A part of `cargo xtask bench operating`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OperatingPart {
    /// A gateway tells a collector traces and metrics.
    Otlp,
    /// A store is encrypted.
    Encryption,
    /// Ten browsers have the dashboard of an idle gateway open.
    Dashboard,
    /// The store on PostgreSQL is reached over TLS.
    Tls,
}
