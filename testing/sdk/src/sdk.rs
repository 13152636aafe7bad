use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

/// A package for another language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// For Python.
    Python,
    /// For Node.
    Node,
    /// For Go.
    Go,
    /// For Java.
    Java,
}

impl Sdk {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Python, Self::Node, Self::Go, Self::Java];

    /// Its folder.
    pub fn folder(self) -> PathBuf {
        let name = match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Go => "go",
            Self::Java => "java",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(name)
    }

    /// Installs what it needs, once in a process; what went wrong, if anything did.
    pub fn install(self) -> Result<(), String> {
        static INSTALLED: [OnceLock<Result<(), String>>; 4] = [const { OnceLock::new() }; 4];
        let installed = &INSTALLED[self as usize];
        let install = || {
            let mut command = self.program("install");
            match command.output() {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => Err(said(&output)),
                Err(error) => Err(error.to_string()),
            }
        };
        installed.get_or_init(install).clone()
    }

    /// One of its programs, to be run in its folder.
    pub fn program(self, name: &str) -> Command {
        let folder = self.folder();
        let mut command = Command::new(folder.join(name));
        command.current_dir(folder).stdin(Stdio::null());
        command
    }

    /// Whether it can be tested here; where it cannot, that is told, and in CI it is a failure.
    pub fn is_there(self) -> bool {
        match self.install() {
            Ok(()) => true,
            Err(why) => {
                assert!(env::var("CI").as_deref() != Ok("true"), "{self}: {why}");
                println!("NOT CHECKED: the SDK for {self}: {why}");
                false
            }
        }
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Everything that a program said.
pub(crate) fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}
