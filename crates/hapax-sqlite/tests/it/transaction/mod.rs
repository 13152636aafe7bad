//! Operations inside their caller's own transaction, through both drivers.

#[cfg(target_os = "linux")]
mod killed;
mod once;
#[cfg(feature = "sqlx")]
mod pool;
mod shop;
