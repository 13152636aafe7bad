//! The client through its public door.
#![expect(clippy::expect_used, clippy::panic, reason = "in a test, what was not expected ends it")]

mod journal;
