//! Events that wait for the commit of their transaction.

use hapax_core::{Event, outbox::Ringer};

/// Events of one transaction, as columns.
///
/// They are written right before the commit, sorted by topic and key: the locks that keep each
/// key's order are then taken in the same order by everybody, so that no two transactions wait for
/// each other.
#[derive(Debug)]
pub(crate) struct EmittedEvents {
    waiting: Vec<Event>,
    /// Whether some were written.
    written: bool,
    ringer: Option<Ringer>,
}

/// What `tx_emit.sql` takes.
#[derive(Debug, Default)]
pub(crate) struct EventColumns {
    pub(crate) topics: Vec<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) payloads: Vec<Vec<u8>>,
    pub(crate) headers: Vec<String>,
    pub(crate) content_types: Vec<String>,
}

impl EmittedEvents {
    /// None yet; once they are committed, this one is to ring.
    pub(crate) fn ringing(ringer: &Option<Ringer>) -> Self {
        Self { waiting: Vec::new(), written: false, ringer: ringer.clone() }
    }

    /// The transaction was committed.
    pub(crate) fn committed(&self) {
        if let Some(ringer) = self.ringer.as_ref().filter(|_| self.written) {
            ringer.ring();
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// The waiting events, if there are any.
    pub(crate) fn columns(&mut self) -> Option<EventColumns> {
        if self.waiting.is_empty() {
            return None;
        }
        self.written = true;
        let mut waiting = std::mem::take(&mut self.waiting);
        // Stable: events of one key stay in the order they were emitted in.
        waiting.sort_by(|a, b| (a.topic(), a.key()).cmp(&(b.topic(), b.key())));
        let mut columns = EventColumns::default();
        for event in &waiting {
            columns.topics.push(event.topic().to_owned());
            columns.keys.push(event.key().to_owned());
            columns.payloads.push(event.payload().to_vec());
            columns.headers.push(json_object(event));
            columns.content_types.push(event.payload_type().to_owned());
        }
        Some(columns)
    }
}

/// The headers as a JSON object of texts.
fn json_object(event: &Event) -> String {
    let mut json = String::from("{");
    for (at, header) in event.headers().iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        quote(&mut json, &header.name);
        json.push(':');
        quote(&mut json, &String::from_utf8_lossy(&header.value));
    }
    json.push('}');
    json
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            // PostgreSQL keeps no zero in text; what cannot be kept is marked, as everywhere.
            '\0' => json.push('\u{fffd}'),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sorted_by_key_and_keep_their_order_within_it() {
        let mut events = EmittedEvents::ringing(&None);
        for (key, payload) in [("b", "1"), ("a", "2"), ("b", "3"), ("a", "4")] {
            events.push(Event::new("t", key, payload).unwrap());
        }
        let columns = events.columns().unwrap();
        assert_eq!(columns.payloads, [b"2", b"4", b"1", b"3"]);
        assert!(events.columns().is_none());
    }

    #[test]
    fn headers_become_an_object_whatever_they_hold() {
        let event = Event::new("t", "k", "{}").unwrap();
        let event = event.header("a\"b", "c\\d\n\u{e9}").unwrap().header("x", "").unwrap();
        assert_eq!(json_object(&event), "{\"a\\\"b\":\"c\\\\d\\u000a\u{e9}\",\"x\":\"\"}");
    }
}
