//! Examinations of servers that are known.

mod oracles;
mod process;
mod recovery;
mod zoo;
