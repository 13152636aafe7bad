//! h2spec: cases that others wrote, for whether a server speaks HTTP/2 as its RFCs say.

use std::path::PathBuf;

use crate::{error::ServiceError, go::GoProgram};

/// The release is older than modules: what it is built with is pinned here, by version and hash.
const H2SPEC: GoProgram = GoProgram {
    name: "h2spec",
    cached: "h2spec-2.2.1",
    files: &[("go.mod", include_str!("h2spec/go.mod")), ("go.sum", include_str!("h2spec/go.sum"))],
    package: "github.com/summerwind/h2spec/cmd/h2spec",
    remedy: "it needs Go 1.19 or newer that reaches its module proxy; on Debian that is the package golang-go",
};

/// The program, built first if need be.
pub fn program() -> Result<PathBuf, ServiceError> {
    H2SPEC.find_or_build()
}
