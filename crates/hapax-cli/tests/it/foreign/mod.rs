//! Programs that others wrote, as they come, in front of the gateway.

mod curl;
mod h2spec;
mod jdk;
pub(crate) mod packages;
mod stripe;

use std::{
    env,
    io::{self, Write},
    process::Command,
};

use hapax_core::OneLine;
use hapax_services::debian;

use crate::text;

/// A program that a Debian package has.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// What it is asked, and what it then says of itself if it is the one that is meant.
    pub(crate) asked: &'static str,
    pub(crate) says: &'static str,
    pub(crate) package: &'static str,
    pub(crate) remedy: &'static str,
}

impl Program {
    /// Whether it is there, installed first if need be; what cannot be had is told.
    pub(crate) fn is_there(&self) -> bool {
        if self.answers() {
            return true;
        }
        let installed = debian::install(self.name, self.package, self.remedy);
        if let Err(error) = &installed {
            not_checked(self.name, &OneLine::of(error).to_string());
        }
        installed.is_ok_and(|()| self.answers())
    }

    fn answers(&self) -> bool {
        let said = Command::new(self.name).arg(self.asked).output();
        said.is_ok_and(|said| text(&said.stdout).contains(self.says))
    }
}

/// Says that something is not checked; in CI that is a failure.
///
/// Not by `eprintln!`, which nobody sees of a test that passes.
pub(crate) fn not_checked(what: &str, why: &str) {
    let must_be = env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!must_be, "{what} cannot be checked: {why}");
    // Nobody is left to be told when the terminal is gone.
    let _ = writeln!(io::stderr(), "NOT CHECKED: {what}: {why}");
}
