//! What is wrong with a configuration, said so that it can be mended: where, what, and what to
//! write instead.

use std::{cell::RefCell, fmt, ops::Range, path::PathBuf};

use super::names::Home;

/// Most faults told at one time; the rest is told when these are mended.
const FAULTS_MAX: usize = 50;
/// Most characters of a line that are shown with a fault.
const SHOWN_CHARS_MAX: usize = 160;

/// Why a gateway cannot be started with what it was told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: it cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The file is larger than any sensible configuration.
    #[error("{}: it is larger than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// Nobody said what to protect.
    #[error(
        "there is nothing to protect; write `--upstream http://127.0.0.1:3000`, or name a file"
    )]
    NoUpstream,
    /// What it was told cannot be meant.
    #[error("{}", FaultLines(faults))]
    Refused {
        /// Every fault that was found, in the order of the file.
        faults: Vec<Fault>,
    },
}

/// One thing that is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it is: `FILE:LINE:COLUMN`, or the flag.
    pub place: String,
    /// What is wrong; what to write instead.
    pub what: String,
    /// The line, and the part of it that is meant; not shown if it may hold a secret.
    pub excerpt: Option<Excerpt>,
}

/// The part of a file that a fault is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the line, counted from one.
    pub line: usize,
    /// The line.
    pub text: String,
    /// How many characters stand before the part that is meant.
    pub before: usize,
    /// How many characters are meant.
    pub width: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        let Some(Excerpt { line, text, before, width }) = &self.excerpt else { return Ok(()) };
        let gutter = " ".repeat(line.to_string().len());
        let (indent, carets) = (" ".repeat(*before), "^".repeat(*width));
        write!(f, "\n{gutter} |\n{line} | {text}\n{gutter} | {indent}{carets}")
    }
}

struct FaultLines<'a>(&'a [Fault]);

impl fmt::Display for FaultLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

/// Gathers faults, so that a person hears of all of them at once.
#[derive(Debug)]
pub(crate) struct ConfigFaults {
    found: RefCell<Vec<(FaultLocation, String)>>,
    /// Where each setting belongs.
    homes: Vec<Home>,
}

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultLocation {
    /// By a flag, or the variable that stands for it.
    Flag(&'static str),
    /// In the file, from one byte to another.
    File {
        /// The first byte.
        start: usize,
        /// The one after the last.
        end: usize,
    },
}

impl From<Range<usize>> for FaultLocation {
    fn from(span: Range<usize>) -> Self {
        Self::File { start: span.start, end: span.end }
    }
}

impl ConfigFaults {
    /// Of a file that may hold these settings.
    pub(crate) fn new(homes: Vec<Home>) -> Self {
        Self { found: RefCell::default(), homes }
    }

    /// Where a setting of this name belongs, in words.
    pub(crate) fn homes_of(&self, name: &str) -> Vec<String> {
        let homes = self.homes.iter().filter(|(_, names)| names.contains(&name));
        homes.map(|(home, _)| home.clone()).collect()
    }

    /// Notes what is wrong here. The same fault is told once, however often it is found.
    pub(crate) fn add(&self, place: impl Into<FaultLocation>, what: impl Into<String>) {
        let fault = (place.into(), what.into());
        let mut faults = self.found.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The faults as they are told, in the order of the file.
    pub(crate) fn into_error(self, file: &str, text: &str) -> ConfigError {
        let mut found = self.found.into_inner();
        found.sort();
        let faults = found.into_iter().take(FAULTS_MAX).map(|(place, what)| match place {
            FaultLocation::Flag(flag) => Fault { place: flag.to_owned(), what, excerpt: None },
            FaultLocation::File { start, end } => {
                let excerpt = excerpt(text, start, end);
                let place = format!("{file}:{}:{}", excerpt.line, excerpt.before + 1);
                let excerpt = (!may_hold_a_secret(&excerpt.text)).then_some(excerpt);
                Fault { place, what, excerpt }
            }
        });
        ConfigError::Refused { faults: faults.collect() }
    }
}

/// Whether a line is better not repeated where others may read it.
fn may_hold_a_secret(line: &str) -> bool {
    line.contains('@') || ["secret", "token", "password"].iter().any(|word| line.contains(word))
}

fn excerpt(text: &str, start: usize, end: usize) -> Excerpt {
    let (before, line) = (head(text, start), line_of(text, start));
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let meant = text.get(start..end.max(start)).unwrap_or_default();
    let meant = meant.lines().next().unwrap_or_default();
    let rest = &text[line_start..];
    let shown: String = rest.chars().take_while(|c| *c != '\n').take(SHOWN_CHARS_MAX).collect();
    let shown = shown.trim_end().replace(|c: char| c.is_control(), " ");
    let before = before[line_start..].chars().count();
    let room = shown.chars().count().saturating_sub(before);
    let width = meant.chars().count().min(room).max(1);
    Excerpt { line, text: shown, before, width }
}

/// The number of the line that holds this byte, counted from one.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    head(text, at).matches('\n').count() + 1
}

/// What stands before this byte; a byte inside a character or past the end counts as the last one
/// before it.
fn head(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..at]
}
