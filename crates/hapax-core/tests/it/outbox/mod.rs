//! What is decided about an outbox, without one.

mod bell;
mod event;
mod gaps;
mod lanes;
mod names;
mod reader;
