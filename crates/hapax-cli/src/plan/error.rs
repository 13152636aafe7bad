use std::{io, path::PathBuf};

/// Why there is no plan, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(
        "keys would be kept for {retention} while clients try for {tries}: a retry after the key was \
         removed runs a second time; write --retention {recommended}h, two to three times as long as clients try"
    )]
    WindowTooShort { retention: String, tries: String, recommended: u64 },
    #[error("the costs in this program cannot be read")]
    Costs(#[source] serde_json::Error),
    #[error("cannot print the plan")]
    Print(#[source] io::Error),
    #[error("cannot write {path}; name a file that can be written")]
    Save {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
