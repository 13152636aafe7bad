//! Servers that outlive the command that started them, remembered in a directory.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use crate::{
    error::ServiceError,
    postgres::{Detached, Server, Settings},
};

/// The servers remembered in one directory, as `NAME.url`, `NAME.pid` and `NAME.dir`.
#[derive(Debug, Clone)]
pub struct Roster {
    dir: PathBuf,
}

/// What [`Roster::up`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Up {
    /// It was not there, and now it is.
    Started {
        /// Where clients connect.
        url: String,
    },
    /// It was already there.
    WasRunning {
        /// Where clients connect.
        url: String,
    },
}

impl fmt::Display for Up {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { url } => write!(f, "postgres started: {url}"),
            Self::WasRunning { url } => write!(f, "postgres was running: {url}"),
        }
    }
}

impl Roster {
    /// The roster kept in `dir`, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Makes sure PostgreSQL runs, and remembers it.
    pub fn up(&self) -> Result<Up, ServiceError> {
        if let Some(url) = self.url() {
            return Ok(Up::WasRunning { url });
        }
        self.down()?;
        let server = Server::start(Settings::default())?;
        let server = server.detach();
        if let Err(error) = self.remember(&server) {
            server.remove()?;
            return Err(error);
        }
        Ok(Up::Started { url: server.url })
    }

    /// Stops the remembered PostgreSQL if it is still ours, removes its files and forgets it; false
    /// if none was remembered.
    pub fn down(&self) -> Result<bool, ServiceError> {
        let Some(server) = self.remembered() else { return Ok(false) };
        server.remove()?;
        for part in PARTS {
            let file = self.file(part);
            fs::remove_file(&file)
                .map_err(ServiceError::io(format!("remove {}", file.display())))?;
        }
        Ok(true)
    }

    /// Where clients connect to the remembered PostgreSQL; `None` if it does not run.
    pub fn url(&self) -> Option<String> {
        self.remembered().filter(Detached::is_running).map(|server| server.url)
    }

    fn remember(&self, server: &Detached) -> Result<(), ServiceError> {
        fs::create_dir_all(&self.dir)
            .map_err(ServiceError::io(format!("make {}", self.dir.display())))?;
        let dir = server.dir.display().to_string();
        for (part, text) in PARTS.into_iter().zip([&server.pid.to_string(), &dir, &server.url]) {
            let file = self.file(part);
            fs::write(&file, text)
                .map_err(ServiceError::io(format!("write {}", file.display())))?;
        }
        Ok(())
    }

    fn remembered(&self) -> Option<Detached> {
        let [pid, dir, url] = PARTS.map(|part| fs::read_to_string(self.file(part)).ok());
        let dir = Path::new(dir?.trim()).to_owned();
        Some(Detached { url: url?.trim().to_owned(), pid: pid?.trim().parse().ok()?, dir })
    }

    fn file(&self, part: &str) -> PathBuf {
        self.dir.join(format!("postgres.{part}"))
    }
}

/// In the order they are written: whoever reads the URL finds the rest.
const PARTS: [&str; 3] = ["pid", "dir", "url"];
