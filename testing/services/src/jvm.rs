//! Servers that run on Java: their libraries from Maven's own repository, fetched once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{cache, debian, error::ServiceError, process, programs};

const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// A server as Maven knows it.
pub(crate) struct Jars {
    /// What it is called in messages.
    pub(crate) server: &'static str,
    /// What it is called in the cache, version included.
    pub(crate) name: &'static str,
    /// `GROUP:NAME:VERSION`; what they depend on comes with them.
    pub(crate) artifacts: &'static [&'static str],
    /// What a user is told who cannot have it.
    pub(crate) remedy: &'static str,
}

impl Jars {
    /// The start of a command that runs one of these classes: Java, a small heap and the libraries.
    ///
    /// Java, Maven and the libraries are fetched first if need be.
    pub(crate) fn java(&self, heap_mib: u32) -> Result<Command, ServiceError> {
        let java = match programs::find("java", &[]) {
            Some(java) => java,
            None => self.installed("java", "default-jre-headless")?,
        };
        let libraries = cache::filled(self.name, |dir| self.fetch(dir))?;
        let mut command = Command::new(java);
        // One collector thread and no shared statistics file: it is one server among many.
        command.args(["-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms64m"]);
        command.arg(format!("-Xmx{heap_mib}m")).arg("-cp").arg(libraries.join("*"));
        Ok(command)
    }

    /// Puts the libraries into this directory.
    pub(crate) fn fetch(&self, dir: &Path) -> Result<(), ServiceError> {
        let maven = match programs::find("mvn", &[]) {
            Some(maven) => maven,
            None => self.installed("mvn", "maven")?,
        };
        let project =
            tempfile::tempdir().map_err(ServiceError::io("make a temporary directory"))?;
        let pom = project.path().join("pom.xml");
        fs::write(&pom, self.pom())
            .map_err(ServiceError::io(format!("write {}", pom.display())))?;
        let mut command = Command::new(maven);
        command.args(["--quiet", "--batch-mode", "--strict-checksums", "--file"]).arg(&pom);
        command.args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
        command.arg(format!("-DoutputDirectory={}", dir.display()));
        let fetched = process::run(&mut command, FETCH_LIMIT);
        fetched.map(drop).map_err(ServiceError::not_fetched(self.server, self.remedy))
    }

    fn installed(&self, program: &str, package: &str) -> Result<PathBuf, ServiceError> {
        debian::install(self.server, package, self.remedy)?;
        let missing = ServiceError::Missing { server: self.server, remedy: self.remedy };
        programs::find(program, &[]).ok_or(missing)
    }

    fn pom(&self) -> String {
        let dependency = |artifact: &&str| {
            let mut parts = artifact.split(':');
            let tags = ["groupId", "artifactId", "version"].map(|tag| {
                let part = parts.next().unwrap_or_default();
                format!("<{tag}>{part}</{tag}>")
            });
            format!("<dependency>{}</dependency>\n", tags.concat())
        };
        let dependencies: String = self.artifacts.iter().map(dependency).collect();
        format!(
            "<project>\n<modelVersion>4.0.0</modelVersion>\n<groupId>hapax</groupId>\n\
             <artifactId>services</artifactId>\n<version>1</version>\n<packaging>pom</packaging>\n\
             <dependencies>\n{dependencies}</dependencies>\n</project>\n"
        )
    }
}
