//! Looking into the journal, and forgetting.

use std::io::{self, Write};

use hapax::{
    Timestamp,
    client::journal::{
        EntryFilter, EntrySummary, Force, Forgotten, JournalEntry, JournalError, Name,
    },
    wall_clock,
};
use http::Uri;
use serde::Serialize;

use super::{
    error::{CallExitCode, CallFailure},
    journal_file::JournalFile,
};
use crate::table::{columns, harmless};

/// What is known of an operation, without anything that says who asks.
#[derive(Debug, Serialize)]
struct CallDocument {
    name: String,
    key: String,
    state: &'static str,
    status: Option<u16>,
    attempts: u32,
    age_seconds: u64,
    method: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<String>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ListedCall {
    Readable(CallDocument),
    Unreadable { unreadable: String },
}

pub(super) async fn list(place: &JournalFile, json: bool) -> Result<CallExitCode, CallFailure> {
    let journal = place.find()?;
    let (now, mut all, mut filter) = (wall_clock().into(), Vec::new(), EntryFilter::default());
    loop {
        let page = journal.list(filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.position);
        all.extend(page.into_iter().map(|listed| ListedCall::of(listed.entry, now)));
    }
    print(|out| {
        if json {
            return write_json(out, &all);
        }
        let head = ["NAME", "STATE", "ATTEMPTS", "AGE", "KEY", "URL"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(ListedCall::row)).collect();
        columns(out, &rows)
    })
}

pub(super) async fn show(
    place: &JournalFile,
    name: &Name,
    json: bool,
) -> Result<CallExitCode, CallFailure> {
    let found = place.find()?.find(name).await?;
    let entry = found.ok_or_else(|| CallFailure::NotFound { name: name.clone() })?;
    let shown = CallDocument::whole(&entry, wall_clock().into());
    print(|out| if json { write_json(out, &shown) } else { columns(out, &shown.facts()) })
}

pub(super) async fn forget(
    place: &JournalFile,
    name: &Name,
    force: bool,
) -> Result<CallExitCode, CallFailure> {
    let force = if force { Force::Yes } else { Force::No };
    match place.find()?.forget(name, force).await? {
        Forgotten::Done => Ok(CallExitCode::Done),
        Forgotten::Pending { held } => {
            Err(CallFailure::Pending { name: name.clone(), ends_in: held })
        }
        Forgotten::Absent => Err(CallFailure::NotFound { name: name.clone() }),
    }
}

impl ListedCall {
    fn of(entry: Result<EntrySummary, JournalError>, now: Timestamp) -> Self {
        match entry {
            Ok(entry) => Self::Readable(CallDocument::brief(&entry, now)),
            Err(error) => Self::Unreadable { unreadable: harmless(&crate::sentence(&error)) },
        }
    }

    fn row(&self) -> [String; 6] {
        match self {
            Self::Readable(shown) => [
                shown.name.clone(),
                shown.state_in_words(),
                shown.attempts.to_string(),
                age(shown.age_seconds),
                shown.key.clone(),
                format!("{} {}", shown.method, shown.url),
            ],
            Self::Unreadable { unreadable } => {
                ["?", "unreadable", "", "", "", unreadable].map(str::to_owned)
            }
        }
    }
}

impl CallDocument {
    fn brief(entry: &EntrySummary, now: Timestamp) -> Self {
        Self {
            name: entry.name.as_str().to_owned(),
            key: entry.key.as_str().to_owned(),
            state: entry.state.tag().as_str(),
            status: entry.state.answer().copied(),
            attempts: entry.attempts,
            age_seconds: now.after(entry.created.wall).as_secs(),
            method: entry.method.to_string(),
            url: without_query(&entry.url),
            reason: None,
            headers: None,
        }
    }

    fn whole(entry: &JournalEntry, now: Timestamp) -> Self {
        let headers = entry.request.headers().keys().map(ToString::to_string);
        let withheld = entry.request.withheld().iter().map(|name| format!("{name} (not kept)"));
        Self {
            name: entry.name.as_str().to_owned(),
            key: entry.key.as_str().to_owned(),
            state: entry.state.tag().as_str(),
            status: entry.state.answer().map(hapax::Outcome::status),
            attempts: entry.attempts,
            age_seconds: now.after(entry.created.wall).as_secs(),
            method: entry.request.method().to_string(),
            url: without_query(entry.request.url()),
            reason: entry.state.reason().map(harmless),
            headers: Some(headers.chain(withheld).collect()),
        }
    }

    fn facts(&self) -> Vec<[String; 2]> {
        let mut facts = vec![
            ("name", self.name.clone()),
            ("state", self.state_in_words()),
            ("key", self.key.clone()),
            ("request", format!("{} {}", self.method, self.url)),
            ("headers", self.headers.as_deref().unwrap_or_default().join(", ")),
            ("attempts", self.attempts.to_string()),
            ("age", age(self.age_seconds)),
        ];
        facts.extend(self.reason.clone().map(|reason| ("reason", reason)));
        facts.into_iter().map(|(fact, value)| [fact.to_owned(), value]).collect()
    }

    fn state_in_words(&self) -> String {
        match self.status {
            Some(status) => format!("{} {status}", self.state),
            None => self.state.replace('_', " "),
        }
    }
}

/// An address without its query, which may hold what is not for other eyes.
fn without_query(url: &Uri) -> String {
    let whole = url.to_string();
    match whole.split_once('?') {
        Some((place, _)) => format!("{place}?..."),
        None => whole,
    }
}

/// A span in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Whoever closes a pipe has heard enough.
fn print(
    say: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>,
) -> Result<CallExitCode, CallFailure> {
    match say(&mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CallFailure::Print(error)),
        Ok(()) | Err(_) => Ok(CallExitCode::Done),
    }
}
