//! What callers were told, line by line, in a file that survives the process that wrote it.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::Path,
};

use hapax_client::Conclusion;

/// What a caller was told about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The operation.
    pub name: String,
    /// What it came to.
    pub conclusion: Conclusion,
    /// The text of the answer; empty without one.
    pub answer: String,
}

const FILE: &str = "told.log";
const ALL: [Conclusion; 4] =
    [Conclusion::Done, Conclusion::Refused, Conclusion::Unknown, Conclusion::GaveUp];

impl Told {
    /// Writes it down: one write to a file opened for appending.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let Self { name, conclusion, answer } = self;
        let file = OpenOptions::new().create(true).append(true).open(dir.join(FILE));
        file?.write_all(format!("{name}\t{conclusion}\t{answer}\n").as_bytes())
    }

    /// Everything that was written down there.
    pub fn read(dir: &Path) -> io::Result<Vec<Self>> {
        let text = match fs::read_to_string(dir.join(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        text.lines().map(|line| Self::parse(line).ok_or_else(|| unread(line))).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, '\t');
        let name = parts.next()?.to_owned();
        let word = parts.next()?;
        let conclusion = ALL.into_iter().find(|conclusion| conclusion.as_str() == word)?;
        Some(Self { name, conclusion, answer: parts.next()?.to_owned() })
    }
}

fn unread(line: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("`{line}` was never written"))
}
