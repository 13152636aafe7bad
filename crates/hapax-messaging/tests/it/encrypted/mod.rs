//! Encrypted events and messages, on real databases: what is stored, what is sent, and what never is.

mod base;
mod events;
mod messages;
