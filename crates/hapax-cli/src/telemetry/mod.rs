//! What the process tells about itself: traces and metrics by OTLP, and an access log.
//!
//! - `settings` is what `[telemetry]`, `[access_log]` and the environment say;
//! - `access_log` writes lines, `otlp` pushes to a collector: each on a thread of its own, so that neither a slow
//!   disk nor a collector that is away is noticed by a request;
//! - `reporting` starts, reopens and ends them.

mod access_log;
#[cfg(feature = "otlp")]
mod otlp;
mod reporting;
mod settings;

pub(crate) use self::{
    reporting::{Reporting, ReportingError},
    settings::{ACCESS_LOG, TELEMETRY, TelemetrySettings},
};
