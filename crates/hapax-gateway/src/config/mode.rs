//! Whether what routes say is done, or watched alone.

use toml::Spanned;

use super::reader::TableReader;

/// Whether what a route says is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMode {
    /// It is.
    Enforce,
    /// It is not: requests pass as they are, and what would have been done is counted.
    Observe,
}

impl RouteMode {
    /// The word in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}

/// What a route, or `[defaults]` for it, says; what a flag says counts for more.
pub(super) fn read(route: &TableReader<'_>, flag: Option<RouteMode>) -> RouteMode {
    let words = [RouteMode::Enforce, RouteMode::Observe].map(|mode| (mode.as_str(), mode));
    let written = route.word("mode", &words).map(Spanned::into_inner);
    flag.or(written).unwrap_or(RouteMode::Enforce)
}
