//! Examinations of servers that are known.

mod zoo;
