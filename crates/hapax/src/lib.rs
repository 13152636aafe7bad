//! One effect per key: the library a Rust service adds to make retries harmless.
