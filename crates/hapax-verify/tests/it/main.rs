//! The suite against the reference store, and the judges against seeded faults.

mod memory;
