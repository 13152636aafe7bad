//! `promtool`, which comes with Prometheus and checks rules without a server.

use std::path::PathBuf;

use crate::{debian, error::ServiceError, programs};

const TOOL: &str = "promtool";
const REMEDY: &str = "install Prometheus (Debian: `apt-get install -y prometheus`) \
                      or put `promtool` on the PATH";

/// Where `promtool` is, after installing it if need be.
pub fn promtool() -> Result<PathBuf, ServiceError> {
    let find = || programs::find(TOOL, &[]);
    if let Some(program) = find() {
        return Ok(program);
    }
    debian::install(TOOL, "prometheus", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: TOOL, remedy: REMEDY })
}
