//! Examinations of servers that are known.

mod grade;
mod zoo;
