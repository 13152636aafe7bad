//! Which parked events are meant.

use hapax_core::outbox::Selection;

use super::error::OutboxError;
use crate::args::WhichArgs;

/// What the arguments name; all of them if they name none.
pub(super) fn selection(which: &WhichArgs) -> Result<Selection, OutboxError> {
    if let Some(position) = which.position {
        return Ok(Selection::One(position));
    }
    let Some(key) = &which.key else { return Ok(Selection::All) };
    let (topic, key) = match &which.topic {
        Some(topic) => (topic.as_str(), key.as_str()),
        None => key.split_once('/').ok_or(OutboxError::NoTopic)?,
    };
    Ok(Selection::Key { topic: topic.to_owned(), key: key.to_owned() })
}
