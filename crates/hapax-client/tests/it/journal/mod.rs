//! The journal: what is written down, who may pursue it, and what is left after a crash.

mod bench;
mod damage;
mod encryption;
mod faults;
mod leases;
mod opening;
mod removing;
mod requests;
mod rounds;
mod times;
