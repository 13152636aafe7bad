//! A browser without a window, for pages that are to be looked at.

use std::path::PathBuf;

use crate::{debian, error::ServiceError, programs};

const BROWSER: &str = "chromium";
const REMEDY: &str = "install it (Debian: `apt-get install -y chromium`) or put it on the PATH";

/// Where Chromium is, after installing it if need be.
pub fn program() -> Result<PathBuf, ServiceError> {
    let find = || programs::find(BROWSER, &[]);
    if let Some(program) = find() {
        return Ok(program);
    }
    debian::install(BROWSER, "chromium", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: BROWSER, remedy: REMEDY })
}
