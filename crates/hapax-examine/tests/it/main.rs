//! Examinations of servers that are known.

mod consent;
mod openapi;
mod zoo;
