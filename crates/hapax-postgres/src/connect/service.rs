//! Named services: parameters that several programs share, in a file of sections.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{error::AddressError, parameters::Parameters, settings::ClientEnvironment};

/// What the files say about a service: that of the user, then that of the machine.
pub(super) fn parameters(
    name: &str,
    file: Option<&str>,
    environment: &ClientEnvironment<'_>,
) -> Result<Parameters, AddressError> {
    let own = file.map(PathBuf::from).or_else(|| environment.in_home(".pg_service.conf"));
    let shared = environment.variable("PGSYSCONFDIR").map_or_else(
        || PathBuf::from("/etc/postgresql-common/pg_service.conf"),
        |dir| PathBuf::from(dir).join("pg_service.conf"),
    );
    for path in own.iter().chain([&shared]) {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(AddressError::File { path: path.clone(), source }),
        };
        if let Some(found) = section(&text, name, path)? {
            return Ok(found);
        }
    }
    Err(AddressError::NoService { name: name.to_owned() })
}

/// The parameters below `[name]`, if it is there. The first of a name counts.
fn section(text: &str, name: &str, path: &Path) -> Result<Option<Parameters>, AddressError> {
    let mut found: Option<Parameters> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            found = (section.strip_suffix(']') == Some(name)).then(Parameters::default);
        } else if let Some(found) = &mut found {
            let broken = || AddressError::ServiceLine { path: path.to_owned(), line: at + 1 };
            let (key, value) = line.split_once('=').ok_or_else(broken)?;
            let (key, value) = (key.trim(), value.trim());
            if key == "service" {
                return Err(broken());
            }
            if found.get(key).is_none() {
                found.set(key, value.to_owned())?;
            }
        }
    }
    Ok(found)
}
