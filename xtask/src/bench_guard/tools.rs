//! What counts depend on beside the code: the compiler, the C library, the processor shown by valgrind.

use std::{env, fmt, path::Path, process::Command};

use hapax_services::debian;
use serde::Deserialize;

use crate::{TaskFailure, services};

const REMEDY: &str = "install it (Debian: `apt-get install -y valgrind`)";

/// The tools that figures were counted with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountingTools {
    /// What compiled it.
    pub rustc: String,
    /// Whose allocator and copying it uses.
    pub libc: String,
    /// What counted.
    pub valgrind: String,
    /// Which copying that library chose.
    pub cpu: String,
}

impl CountingTools {
    /// Those of this machine; valgrind is installed where that is possible.
    pub fn find_or_install(root: &Path) -> Result<Self, TaskFailure> {
        let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let asked = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).current_dir(root).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        };
        let needed = |program: &str, args: &[&str]| {
            asked(program, args)
                .ok_or_else(|| TaskFailure::new(format!("`{program}` cannot be run")))
        };
        let valgrind = match asked("valgrind", &["--version"]) {
            Some(version) => version,
            None => {
                debian::install("valgrind", "valgrind", REMEDY)
                    .map_err(|error| TaskFailure::new(services::describe(&error)))?;
                needed("valgrind", &["--version"])?
            }
        };
        Ok(Self {
            rustc: needed(&rustc, &["--version"])?,
            libc: needed("getconf", &["GNU_LIBC_VERSION"])?,
            valgrind,
            cpu: cpu().to_owned(),
        })
    }

    /// In what these differ from the tools of this machine, in words.
    pub fn differences(&self, here: &Self) -> Vec<ToolDifference> {
        let pairs = [
            (&self.rustc, &here.rustc),
            (&self.libc, &here.libc),
            (&self.valgrind, &here.valgrind),
            (&self.cpu, &here.cpu),
        ];
        let differing = pairs.into_iter().filter(|(committed, here)| committed != here);
        differing
            .map(|(committed, here)| ToolDifference {
                committed: committed.clone(),
                here: here.clone(),
            })
            .collect()
    }
}

/// The C library copies with the widest registers there are, up to those that valgrind knows.
fn cpu() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if !std::is_x86_feature_detected!("avx2") {
        return "without AVX2";
    }
    "with AVX2"
}

/// Figures were counted with something else than this machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDifference {
    committed: String,
    here: String,
}

impl fmt::Display for ToolDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the figures are for {}; here is {}", self.committed, self.here)
    }
}
