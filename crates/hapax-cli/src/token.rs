//! Tokens that are given by a file, which fewer can see than what somebody types.

use std::{fs, io, path::Path};

/// The token in this file, without the space around it.
pub(crate) fn token_in(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}
