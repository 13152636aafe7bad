//! The journal: what is written down, who may pursue it, and what is left after a crash.

mod bench;
mod leases;
