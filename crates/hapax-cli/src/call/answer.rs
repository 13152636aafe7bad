//! Printing what came back.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use hapax::client::Answer;

use super::error::CallFailure;
use crate::args::CallArgs;

/// Where the answer goes.
pub(super) struct Out<'a> {
    include: bool,
    file: Option<&'a Path>,
}

impl<'a> Out<'a> {
    /// A file that could not be written is better found out before anything is sent.
    pub(super) fn of(args: &'a CallArgs) -> Result<Self, CallFailure> {
        let file = args.output.output.as_deref();
        if let Some(path) = file {
            let looked = if path.exists() {
                OpenOptions::new().write(true).open(path).map(drop)
            } else {
                let directory = path.parent().map_or_else(PathBuf::new, Path::to_owned);
                fs::read_dir(if directory.as_os_str().is_empty() { ".".into() } else { directory })
                    .map(drop)
            };
            looked.map_err(|source| CallFailure::Output { path: path.to_owned(), source })?;
        }
        Ok(Self { include: args.output.include, file })
    }

    pub(super) fn write(&self, answer: &Answer) -> Result<(), CallFailure> {
        let mut bytes = Vec::new();
        if self.include {
            bytes.extend(format!("HTTP {}\n", answer.status()).bytes());
            for (name, value) in answer.headers() {
                bytes.extend(format!("{name}: ").bytes());
                bytes.extend(value.as_bytes());
                bytes.push(b'\n');
            }
            bytes.push(b'\n');
        }
        bytes.extend(answer.bytes());
        let written = match self.file {
            Some(path) => fs::write(path, bytes),
            None => print(&bytes),
        };
        written.map_err(CallFailure::Print)
    }
}

/// Whoever closes a pipe has heard enough.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
