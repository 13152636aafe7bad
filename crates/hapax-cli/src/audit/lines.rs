//! Events in files, one on each line.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use hapax_core::outbox::EventId;
use serde::Deserialize;

use super::error::AuditError;

/// What an audit reads of a CloudEvent.
#[derive(Debug, Deserialize)]
struct EventLine {
    id: String,
    #[serde(rename = "type", default)]
    topic: String,
    #[serde(rename = "subject", default)]
    key: String,
}

/// A line of a file.
pub(super) enum ReadLine {
    /// An event, with its topic and key if they are there.
    Event { id: EventId, topic: String, key: String },
    /// Something else.
    Unreadable,
}

/// Every line of this file that ends; a last one that does not is still being written.
pub(super) fn read(path: &Path, mut each: impl FnMut(ReadLine)) -> Result<(), AuditError> {
    let unreadable = |source| AuditError::File { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = file.read_until(b'\n', &mut line).map_err(unreadable)?;
        if count == 0 || line.last() != Some(&b'\n') {
            return Ok(());
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            each(parse(text));
        }
    }
}

fn parse(text: &[u8]) -> ReadLine {
    let bare = std::str::from_utf8(text).ok().and_then(EventId::parse);
    if let Some(id) = bare {
        return ReadLine::Event { id, topic: String::new(), key: String::new() };
    }
    let line = serde_json::from_slice::<EventLine>(text).ok();
    let named = line.and_then(|line| Some((EventId::parse(&line.id)?, line.topic, line.key)));
    match named {
        Some((id, topic, key)) => ReadLine::Event { id, topic, key },
        None => ReadLine::Unreadable,
    }
}
