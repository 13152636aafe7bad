//! Where programs are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The program `name`: in the first of `places` that has it, else on the PATH.
pub(crate) fn find(name: &str, places: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs = places.iter().map(Path::new).map(Path::to_owned).chain(env::split_paths(&path));
    dirs.find_map(|dir| Some(dir.join(name)).filter(|program| program.is_file()))
}
